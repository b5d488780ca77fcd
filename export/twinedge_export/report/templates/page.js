// Marks tables wider than their place, as phones show no scroll bar.

(() => {
  const places = document.querySelectorAll(".scroll");
  const look = (place) => place.classList.toggle("wider", place.scrollWidth > place.clientWidth + 1);
  const watch = new ResizeObserver((seen) => seen.forEach(({ target }) => look(target)));
  places.forEach((place) => {
    look(place);
    watch.observe(place);
  });
})();
