'use strict';
// Draws what the page holds as JSON (see page.cpp), without asking anybody else for anything.
(() => {
  const root = document.getElementById('page');
  const dark = matchMedia('(prefers-color-scheme: dark)');
  // Distinguishable for most people who see colours differently (after Okabe and Ito).
  const light_colours = ['#0072b2', '#d55e00', '#007a5a', '#a4508b', '#8a6d00', '#3b3b98', '#c2185b', '#00788a', '#6b4e16', '#5f6b77', '#7b1fa2', '#2e7d32'];
  const dark_colours = ['#56b4e9', '#ff9e4a', '#2fd6a3', '#e39bd0', '#f0e442', '#a5a5ff', '#ff7aa8', '#5fe0ee', '#d9b27c', '#b9c3ce', '#cf93e6', '#8fdc93'];
  const colours = () => (dark.matches ? dark_colours : light_colours);
  const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

  function make(tag, given = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (name === 'class') element.className = value;
      else if (name === 'text') element.textContent = value;
      else element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  function number_text(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return '–';
    if (value === 0) return '0';
    const size = Math.abs(value);
    if (size >= 1e-4 && size < 1e6) return String(Number(value.toPrecision(5)));
    return value.toExponential(3).replace(/\.?0+e/, 'e').replace('e+', 'e');
  }

  // Text with `code` between backquotes.
  function rich(text) {
    const parts = text.split('`');
    return parts.map((part, i) => (i % 2 ? make('code', { text: part }) : document.createTextNode(part)));
  }

  // ---- charts

  const drawn = [];  // charts, to be told of a change of size or of the colours

  // Data of one x each, or of several: uPlot joins them over all that there are.
  function columns_of(chart) {
    if (!chart.series.some((series) => series.x)) return [chart.x, ...chart.series.map((series) => series.y)];
    return uPlot.join(chart.series.map((series) => [series.x ?? chart.x, series.y]));
  }

  function range_text(series) {
    let low = Infinity, high = -Infinity, last = null;
    for (const value of series.y) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
      last = value;
    }
    return last === null ? ['–', '–', '–'] : [low, high, last].map(number_text);
  }

  function draw_chart(chart, id) {
    const figure = make('figure', { 'data-chart': chart.title });
    const title_id = `chart-${id}`;
    figure.append(make('h3', { id: title_id, text: chart.title }));
    const plot = make('div', { class: 'plot', tabindex: '0', role: 'group', 'aria-labelledby': title_id,
      'aria-roledescription': 'chart', 'aria-describedby': `${title_id}-how` });
    figure.append(plot);
    const legend = make('div', { class: 'legend', role: 'group', 'aria-label': 'Lines shown' });
    figure.append(legend);
    const readout = make('div', { class: 'soft tip', 'aria-live': 'polite' });
    const reset = make('button', { type: 'button', text: 'Whole range' });
    figure.append(make('div', { class: 'tools' }, reset, readout));
    if (chart.note) figure.append(make('figcaption', {}, ...rich(chart.note)));
    figure.append(make('span', { id: `${title_id}-how`, hidden: '', text: 'Arrow keys move along, plus and minus zoom, 0 shows all.' }));

    let shown = chart.series.map((_, i) => i < (chart.shown ?? 8));
    let outputs = [];
    let uplot = null;
    let columns = columns_of(chart);

    function colour(i) { return colours()[(chart.series[i].colour ?? i) % 12]; }
    function width() { return Math.max(240, plot.clientWidth || figure.clientWidth - 24 || 480); }

    function build() {
      if (uplot) uplot.destroy();
      const style = getComputedStyle(document.documentElement);
      const ink = style.getPropertyValue('--soft').trim(), line = style.getPropertyValue('--line').trim();
      const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: '12px system-ui, sans-serif', labelFont: '12px system-ui, sans-serif' };
      const short = (self, splits) => splits.map((value) => (value === null ? '' : number_text(value)));
      // Of a logarithmic axis powers of ten only, and not too many of them.
      const powers = (self, index, low, high) => {
        const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
        const stride = Math.max(1, Math.ceil((last - first + 1) / (index === 0 ? 8 : 7)));
        const all = [];
        for (let power = first; power <= last; power += stride) all.push(10 ** power);
        if (all.length > 1) return all;
        const fine = [];
        for (let power = first - 1; power <= last + 1; ++power) {
          for (const digit of [1, 2, 5]) fine.push(digit * 10 ** power);
        }
        return fine.filter((value) => value >= low * 0.999 && value <= high * 1.001);
      };
      const ticks = (is_log) => (is_log ? { splits: powers, filter: (self, splits) => splits } : {});
      const options = {
        width: width(), height: 260, legend: { show: false },
        cursor: { y: false, drag: { x: true, y: false } },
        scales: { x: { time: false, distr: chart.log_x ? 3 : 1 }, y: { distr: chart.log_y ? 3 : 1 } },
        axes: [{ ...axis, ...ticks(chart.log_x), label: chart.x_label, labelSize: 20, values: short },
               { ...axis, ...ticks(chart.log_y), label: chart.y_label || undefined, labelSize: 20, size: 70, values: short }],
        series: [{}, ...chart.series.map((series, i) => ({
          label: series.label, stroke: colour(i), width: series.points ? 0 : 1.5, show: shown[i],
          dash: dashes[(series.dash ?? 0) % dashes.length], spanGaps: true,
          paths: chart.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
          points: { show: Boolean(series.points || chart.points || columns[0].length < 2), size: 5 } }))],
        hooks: { setCursor: [(self) => tell(self.cursor.idx)] },
      };
      uplot = new uPlot(options, columns, plot);
    }

    function tell(index) {
      const known = index !== null && index !== undefined;
      readout.textContent = known ? `${chart.x_label} ${number_text(columns[0][index])}` : '';
      outputs.forEach((output, i) => { output.textContent = known ? number_text(columns[i + 1][index]) : ''; });
    }

    chart.series.forEach((series, i) => {
      const box = make('input', { type: 'checkbox' });
      box.checked = shown[i];
      box.addEventListener('change', () => { shown[i] = box.checked; uplot.setSeries(i + 1, { show: box.checked }); });
      const swatch = make('span', { class: 'swatch', 'aria-hidden': 'true' });
      const output = make('output');
      outputs.push(output);
      legend.append(make('label', {}, box, swatch, make('span', { class: 'name', text: series.label, title: series.label }), output));
    });
    function paint_swatches() {
      legend.querySelectorAll('.swatch').forEach((swatch, i) => {
        swatch.style.borderTopColor = colour(i);
        swatch.style.borderTopStyle = ['solid', 'dashed', 'dotted', 'dashed'][(chart.series[i].dash ?? 0) % 4];
      });
    }

    function whole_range() {
      const x = columns[0];
      if (x.length > 0) uplot.setScale('x', { min: x[0], max: x[x.length - 1] > x[0] ? x[x.length - 1] : x[0] + 1 });
    }
    function zoom(factor) {
      const { min, max } = uplot.scales.x;
      const index = uplot.cursor.idx;
      const logarithmic = Boolean(chart.log_x);
      const to = logarithmic ? Math.log : (v) => v, from = logarithmic ? Math.exp : (v) => v;
      const low = to(min), high = to(max);
      const at = index === null || index === undefined ? (low + high) / 2 : to(columns[0][index]);
      uplot.setScale('x', { min: from(at - (at - low) * factor), max: from(at + (high - at) * factor) });
    }
    function move(step) {
      const x = columns[0];
      if (x.length === 0) return;
      const stride = Math.max(1, Math.round(x.length / 200));
      const before = uplot.cursor.idx ?? (step > 0 ? -stride : x.length - 1 + stride);
      const index = Math.min(x.length - 1, Math.max(0, before + step * stride));
      uplot.setCursor({ left: uplot.valToPos(x[index], 'x'), top: 10 });
      tell(index);
    }
    reset.addEventListener('click', whole_range);
    plot.addEventListener('keydown', (event) => {
      const acts = { ArrowLeft: () => move(-1), ArrowRight: () => move(1), '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), 0: whole_range };
      const act = acts[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });

    const ranges = make('details', {}, make('summary', { text: 'Ranges' }));
    function fill_ranges() {
      const rows = chart.series.map((series) => make('tr', {}, make('th', { scope: 'row', text: series.label }),
        ...range_text(series).map((text) => make('td', { text }))));
      ranges.querySelector('.table')?.remove();
      ranges.append(make('div', { class: 'table' }, make('table', {},
        make('tr', {}, make('th', { text: '' }), ...['smallest', 'largest', 'last'].map((text) => make('th', { scope: 'col', text }))), ...rows)));
    }
    fill_ranges();
    figure.append(ranges);

    drawn.push({
      chart,
      build: () => { build(); paint_swatches(); },
      resize: () => uplot.setSize({ width: width(), height: 260 }),
      renew: (other) => {  // of the same shape
        chart.x = other.x;
        chart.series.forEach((series, i) => { series.y = other.series[i].y; series.x = other.series[i].x; });
        columns = columns_of(chart);
        uplot.setData(columns);
        fill_ranges();
      },
    });
    return figure;
  }

  // ---- the network

  // Positions of the nodes by springs along links and repulsion between all; the same every time.
  function lay_out(nodes, links) {
    const count = nodes.length;
    const place = nodes.map((_, i) => {  // along a spiral
      const angle = i * 2.399963, radius = Math.sqrt(i + 0.5);
      return { x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
    });
    const rounds = count > 150 ? 250 : 500;
    for (let round = 0; round < rounds; ++round) {
      const most = 0.6 * (1 - round / rounds) + 0.01;
      const push = place.map(() => ({ x: 0, y: 0 }));
      for (let i = 0; i < count; ++i) {
        for (let k = i + 1; k < count; ++k) {
          const dx = place[i].x - place[k].x, dy = place[i].y - place[k].y;
          const squared = Math.max(dx * dx + dy * dy, 1e-4);
          const strength = 1.2 / squared;
          push[i].x += dx * strength; push[i].y += dy * strength;
          push[k].x -= dx * strength; push[k].y -= dy * strength;
        }
        push[i].x -= 0.02 * place[i].x; push[i].y -= 0.02 * place[i].y;
      }
      for (const link of links) {
        const a = place[link.a], b = place[link.b];
        const dx = b.x - a.x, dy = b.y - a.y, length = Math.hypot(dx, dy);
        const pull = 0.6 * Math.max(length - 0.8, 0) / Math.max(length, 1e-6);
        push[link.a].x += dx * pull; push[link.a].y += dy * pull;
        push[link.b].x -= dx * pull; push[link.b].y -= dy * pull;
      }
      place.forEach((p, i) => {
        const size = Math.hypot(push[i].x, push[i].y);
        const scale = size > most ? most / size : 1;
        p.x += push[i].x * scale;
        p.y += push[i].y * scale;
      });
    }
    return place;
  }

  function draw_network(network) {
    const space = 'http://www.w3.org/2000/svg';
    const svg = document.createElementNS(space, 'svg');
    const { nodes, links } = network;
    const place = lay_out(nodes, links);
    const xs = place.map((p) => p.x), ys = place.map((p) => p.y);
    const left = Math.min(...xs), right = Math.max(...xs), top = Math.min(...ys), bottom = Math.max(...ys);
    const wide = 960, margin = 60;
    const scale = Math.min((wide - 2 * margin) / Math.max(right - left, 1e-9), (600 - 2 * margin) / Math.max(bottom - top, 1e-9), 110);
    const high = Math.max((bottom - top) * scale + 2 * margin, 160);
    const x = (p) => wide / 2 + (p.x - (left + right) / 2) * scale, y = (p) => high / 2 + (p.y - (top + bottom) / 2) * scale;
    svg.setAttribute('viewBox', `0 0 ${wide} ${high.toFixed(0)}`);
    svg.setAttribute('class', 'network');
    svg.setAttribute('role', 'group');
    svg.setAttribute('aria-label', network.summary);
    const tip = make('p', { class: 'soft tip', 'aria-live': 'polite', text: network.summary });
    const largest = Math.max(...links.map((link) => Math.abs(link.energy_J ?? 0)), 0);
    const neighbours = nodes.map(() => []);
    for (const link of links) {
      neighbours[link.a].push(link.b);
      neighbours[link.b].push(link.a);
      const line = document.createElementNS(space, 'line');
      line.setAttribute('x1', x(place[link.a])); line.setAttribute('y1', y(place[link.a]));
      line.setAttribute('x2', x(place[link.b])); line.setAttribute('y2', y(place[link.b]));
      line.setAttribute('stroke-width', largest > 0 ? (1 + 6 * Math.sqrt(Math.abs(link.energy_J ?? 0) / largest)).toFixed(2) : '1.5');
      svg.append(line);
    }
    const types = [...new Set(nodes.filter((node) => !node.junction).map((node) => node.type))];
    const groups = nodes.map((node, i) => {
      const group = document.createElementNS(space, 'g');
      group.setAttribute('transform', `translate(${x(place[i]).toFixed(1)},${y(place[i]).toFixed(1)})`);
      const circle = document.createElementNS(space, 'circle');
      const radius = node.junction ? 4 : Math.min(26, 7 + 3 * Math.log2(node.count ?? 1));
      circle.setAttribute('r', radius);
      if (node.junction) circle.setAttribute('class', 'junction');
      else circle.dataset.type = types.indexOf(node.type);
      group.append(circle);
      if (!node.junction) {
        group.setAttribute('tabindex', '0');
        group.setAttribute('role', 'img');
        group.setAttribute('aria-label', node.says);
        if (nodes.length <= 80) {
          const text = document.createElementNS(space, 'text');
          text.setAttribute('y', radius + 12);
          text.textContent = node.name.length > 22 ? `${node.name.slice(0, 21)}…` : node.name;
          group.append(text);
        }
      }
      const show = () => {
        tip.textContent = node.says;
        groups.forEach((other, k) => other.classList.toggle('dim', k !== i && !neighbours[i].includes(k)));
      };
      const hide = () => groups.forEach((other) => other.classList.remove('dim'));
      for (const name of ['mouseenter', 'focus']) group.addEventListener(name, show);
      for (const name of ['mouseleave', 'blur']) group.addEventListener(name, hide);
      svg.append(group);
      return group;
    });
    const legend = make('div', { class: 'legend' });
    types.slice(0, 24).forEach((type, i) => {
      const swatch = make('span', { class: 'swatch', 'data-type': String(i) });
      legend.append(make('label', {}, swatch, make('span', { text: type })));
    });
    const figure = make('figure', {}, svg, tip, legend, network.note ? make('figcaption', {}, ...rich(network.note)) : null);
    const paint = () => {
      svg.querySelectorAll('circle[data-type]').forEach((circle) => { circle.style.fill = colours()[Number(circle.dataset.type) % 12]; });
      legend.querySelectorAll('.swatch').forEach((swatch) => { swatch.style.borderTopColor = colours()[Number(swatch.dataset.type) % 12]; });
    };
    drawn.push({ build: paint, resize: () => {} });
    return figure;
  }

  // ---- the page

  function draw_table(table) {
    const cell = (value) => (typeof value === 'string' ? value : number_text(value));
    return make('div', {}, table.title ? make('h3', { text: table.title }) : null,
      make('div', { class: 'table', tabindex: '0', role: 'region', 'aria-label': table.title || 'Table' }, make('table', {},
        make('thead', {}, make('tr', {}, ...table.columns.map((text) => make('th', { scope: 'col', text })))),
        make('tbody', {}, ...table.rows.map((row) => make('tr', {}, ...row.map((value) => make('td', { text: cell(value), class: typeof value === 'string' ? 'words' : '' }))))))),
      table.note ? make('p', { class: 'soft' }, ...rich(table.note)) : null);
  }

  const marks = { good: '✓', warn: '!', bad: '✗' };

  function facts_list(facts) {
    return make('dl', { class: 'facts' }, ...facts.map(([label, value]) => make('div', {}, make('dt', { text: label }), make('dd', { text: value }))));
  }
  function verdict_line(verdict) {
    return make('p', { class: `verdict ${verdict.level}` }, make('span', { class: 'mark', text: marks[verdict.level], 'aria-hidden': 'true' }), make('span', {}, ...rich(verdict.text)));
  }
  function advice_list(advice) {
    return make('ul', { class: 'advice' }, ...advice.map((one) => make('li', { class: one.level }, make('strong', {}, ...rich(one.title)), make('p', {}, ...rich(one.text)))));
  }

  const renewed = {};  // what a live page renews
  function draw(data) {
    drawn.length = 0;
    root.replaceChildren();
    root.append(make('h1', { text: data.title }));
    const head = make('div');
    renewed.head = head;
    root.append(head);
    draw_head(data);
    let id = 0;
    for (const section of data.sections) {
      if (section.charts.length + section.tables.length === 0 && !section.text && !section.network) continue;
      root.append(make('h2', { text: section.title }));
      if (section.text) root.append(make('p', { class: 'soft' }, ...rich(section.text)));
      if (section.network) root.append(draw_network(section.network));
      root.append(make('div', { class: 'charts' }, ...section.charts.map((chart) => draw_chart(chart, ++id))));
      for (const table of section.tables) root.append(draw_table(table));
    }
    for (const one of drawn) one.build();
  }
  function draw_head(data) {
    renewed.head.replaceChildren();
    if (data.subtitle) renewed.head.append(make('p', { class: 'soft', text: data.subtitle }));
    if (data.verdict) renewed.head.append(verdict_line(data.verdict));
    renewed.head.append(facts_list(data.facts));
    if (data.advice.length > 0) renewed.head.append(make('h2', { text: 'What to try' }), advice_list(data.advice));
  }

  const shape_of = (data) => JSON.stringify(data.sections.map((section) => section.charts.map((chart) => [chart.title, chart.series.map((series) => series.label)])));

  let data = JSON.parse(document.getElementById('data').textContent);
  draw(data);
  document.body.dataset.drawn = 'yes';

  if (data.events) {
    const source = new EventSource(data.events);
    source.onmessage = (event) => {
      const next = JSON.parse(event.data);
      if (shape_of(next) !== shape_of(data)) {
        draw(next);
      } else {
        draw_head(next);
        const charts = next.sections.flatMap((section) => section.charts);
        drawn.filter((one) => one.renew).forEach((one, i) => one.renew(charts[i]));
      }
      data = next;
      document.body.dataset.updates = String(Number(document.body.dataset.updates ?? 0) + 1);
      if (next.ended) source.close();
    };
  }

  dark.addEventListener('change', () => drawn.forEach((one) => one.build()));
  let waiting = 0;
  addEventListener('resize', () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => drawn.forEach((one) => one.resize()));
  });
})();
