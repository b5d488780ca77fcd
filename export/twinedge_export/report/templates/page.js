// Tells where a table is wider than its place, which a phone does not show.

(() => {
  const places = document.querySelectorAll(".scroll");
  const look = (place) => place.classList.toggle("wider", place.scrollWidth > place.clientWidth + 1);
  const watch = new ResizeObserver((seen) => seen.forEach(({ target }) => look(target)));
  places.forEach((place) => {
    look(place);
    watch.observe(place);
  });
})();
