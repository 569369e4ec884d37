for (const figure of document.querySelectorAll('.curve')) {
  const svg = figure.querySelector('svg');
  const tip = figure.querySelector('.tip');
  const data = JSON.parse(figure.querySelector('script').textContent);
  const make = (name, attributes) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return svg.appendChild(element);
  };
  const cursor = make('path', { class: 'cursor', 'stroke-width': 1, visibility: 'hidden' });
  const dots = data.series.map(series =>
    make('circle', { class: 'd' + series.colour, r: 3.5, visibility: 'hidden' }));
  const nearest = (points, x) => {
    let low = 0, high = points.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < x) low = middle + 1; else high = middle;
    }
    return low > 0 && x - points[low - 1][0] < points[low][0] - x ? points[low - 1] : points[low];
  };
  const hide = () => {
    tip.hidden = true;
    for (const element of [cursor, ...dots]) element.setAttribute('visibility', 'hidden');
  };
  const show = event => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) * data.width / box.width;
    const found = data.series.map(series => nearest(series.points, x));
    const near = found.reduce((a, b) => Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a);
    const place = document.createElement('div');
    place.textContent = near[2];
    tip.replaceChildren(place);
    found.forEach((point, index) => {
      const shown = Math.abs(point[0] - near[0]) < 12;
      dots[index].setAttribute('visibility', shown ? 'visible' : 'hidden');
      if (!shown) return;
      dots[index].setAttribute('cx', point[0]);
      dots[index].setAttribute('cy', point[1]);
      const row = document.createElement('div');
      const mark = row.appendChild(document.createElement('i'));
      mark.className = 'b' + data.series[index].colour;
      row.append(`${data.series[index].name} ${point[3]}`);
      tip.append(row);
    });
    cursor.setAttribute('d', `M${near[0]} 36V174`);
    cursor.setAttribute('visibility', 'visible');
    tip.hidden = false;
    const left = near[0] * box.width / data.width;
    const flip = left > box.width / 2;
    tip.style.left = (flip ? left - tip.offsetWidth - 10 : left + 10) + 'px';
    tip.style.top = box.height * 0.2 + 'px';
  };
  svg.addEventListener('pointermove', show);
  svg.addEventListener('pointerdown', show);
  svg.addEventListener('pointerleave', hide);
}
