// What the scripts below share; and a mark on tables wider than their place, as phones show no
// scroll bar.

const at = (id) => document.getElementById(id);

function fill(one, attributes, words) {
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  if (words !== undefined) one.textContent = words;
  return one;
}

const element = (name, attributes = {}, words) =>
  fill(document.createElement(name), attributes, words);

// Adds a shape to a figure.
function put(svg, name, attributes, words) {
  svg.append(fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, words));
}

(() => {
  const places = document.querySelectorAll(".scroll");
  const look = (place) => place.classList.toggle("wider", place.scrollWidth > place.clientWidth + 1);
  const watch = new ResizeObserver((seen) => seen.forEach(({ target }) => look(target)));
  places.forEach((place) => {
    look(place);
    watch.observe(place);
  });
})();
