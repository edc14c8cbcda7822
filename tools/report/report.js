// What moves: zoom, drag, what the pointer shows.

const unit = document.body.dataset.unit;
const tip = document.getElementById('tip');
const view = { begin: 0, end: 1 };
let data = null;
let chunks = 1;
let timeline = null;
let memory = null;
let plots = [];
let theme = null;

function redraw() {
  for (const plot of plots) {
    if (plot.width) {
      plot.draw(data.stages, theme);
    }
  }
  const { dataset } = timeline.section;
  dataset.begin = view.begin;
  dataset.end = view.end;
}

let pending = false;
function redrawSoon() {
  if (!pending) {
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      redraw();
    });
  }
}

/// Fewer stages have higher rows.
function layOut() {
  theme = readTheme(chunks);
  for (const plot of plots) {
    plot.resize(Math.round(Math.max(14, Math.min(
      plot.highest, 16 * plot.highest / Math.max(1, data.stages.length)))));
  }
  redraw();
}

function show(begin, length) {
  length = Math.min(data.total, Math.max(data.total * 1e-5, length));
  view.begin = Math.max(0, Math.min(data.total - length, begin));
  view.end = view.begin + length;
  redrawSoon();
}

/// Makes the interval `factor` times as long; `time` stays where it is.
function zoom(factor, time) {
  const length = view.end - view.begin;
  const next = Math.min(data.total, length * factor);
  show(time - (time - view.begin) * next / length, next);
}

function showTip(title, lines, x, y) {
  const list = document.createElement('dl');
  for (const [name, value] of lines) {
    list.appendChild(document.createElement('dt')).textContent = name;
    list.appendChild(document.createElement('dd')).textContent = value;
  }
  const heading = document.createElement('b');
  heading.textContent = title;
  tip.replaceChildren(heading, list);
  tip.hidden = false;
  const left = x + 16 + tip.offsetWidth > window.innerWidth
    ? x - 16 - tip.offsetWidth : x + 16;
  const top = Math.min(y + 16, window.innerHeight - tip.offsetHeight - 8);
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function clearHover() {
  tip.hidden = true;
  for (const plot of plots) {
    plot.contexts[1].clearRect(0, 0, plot.width, plot.height);
  }
}

/// A row's name, and what stands beside it in the timeline.
function nameOf(stage) {
  return document.querySelector(`.stage-row[data-stage="${stage}"]`).title;
}

function timeText(time) {
  return `${number(time)} ${unit}`;
}

function hover(plot, event) {
  clearHover();
  const time = plot.time(event.offsetX);
  for (const each of plots) {
    each.contexts[1].fillStyle = theme.muted;
    each.contexts[1].fillRect(each.x(time), kAxis - 6, 1, each.height);
  }
  const index = plot.stageAt(event.offsetY);
  if (index < 0) {
    return;
  }
  const stage = data.stages[index];
  if (plot === memory) {
    showTip(nameOf(index), [['time', timeText(time)],
      ['memory', humanBytes(memory.bytesAt(stage, time))],
      ['peak', humanBytes(stage.bytes.reduce((a, b) => Math.max(a, b), 0))]],
    event.clientX, event.clientY);
    return;
  }
  const bar = timeline.barAt(stage, time);
  if (bar < 0) {
    showTip(nameOf(index), [['idle at', timeText(time)]],
      event.clientX, event.clientY);
    return;
  }
  timeline.frame(data.stages, stage.microBatch[bar], theme);
  showTip(`${nameOf(index)}: ${kWorks[stage.work[bar]].name}`, [
    ['micro-batch', stage.microBatch[bar]],
    ['chunk', stage.chunk[bar]],
    ['begin', timeText(stage.begin[bar])],
    ['end', timeText(stage.end[bar])],
    ['takes', timeText(stage.end[bar] - stage.begin[bar])]],
  event.clientX, event.clientY);
}

function listen(plot) {
  const { over } = plot;
  let drag = null;
  over.addEventListener('wheel', (event) => {
    // What cannot be zoomed out scrolls the page.
    const whole = view.end - view.begin >= data.total;
    if (event.ctrlKey || event.deltaY === 0 || (whole && event.deltaY > 0)) {
      return;
    }
    event.preventDefault();
    zoom(Math.exp(Math.max(-240, Math.min(240, event.deltaY)) / 400),
      plot.time(event.offsetX));
    clearHover();
  }, { passive: false });
  over.addEventListener('pointerdown', (event) => {
    drag = { x: event.offsetX, begin: view.begin };
    over.setPointerCapture(event.pointerId);
    over.classList.add('dragging');
    clearHover();
  });
  over.addEventListener('pointermove', (event) => {
    if (drag === null) {
      hover(plot, event);
      return;
    }
    const length = view.end - view.begin;
    show(drag.begin - (event.offsetX - drag.x) / plot.width * length, length);
  });
  for (const name of ['pointerup', 'pointercancel']) {
    over.addEventListener(name, () => {
      drag = null;
      over.classList.remove('dragging');
    });
  }
  over.addEventListener('pointerleave', clearHover);
  over.addEventListener('dblclick', () => show(0, data.total));
}

function fillLegend() {
  const used = new Set();
  data.stages.forEach(({ work }) => work.forEach((w) => used.add(w)));
  const legend = document.getElementById('works');
  const add = (name, colour) => {
    const item = legend.appendChild(document.createElement('span'));
    const swatch = item.appendChild(document.createElement('i'));
    swatch.style.background = colour;
    item.append(name);
  };
  kWorks.forEach(({ name, colour }, work) => {
    if (used.has(work)) {
      add(name, `var(${colour})`);
    }
  });
  add('idle', 'var(--lane)');
  if (chunks > 1) {
    legend.appendChild(document.createElement('span')).textContent =
      'later chunks are paler';
  }
}

async function start() {
  data = await readData();
  view.end = data.total;
  chunks = data.stages.reduce(
    (most, { chunk }) => chunk.reduce((a, b) => Math.max(a, b + 1), most), 1);
  timeline = new TimelinePlot('timeline', view, data.stages.length, 30);
  memory = new MemoryPlot('memory', view, data.stages.length, 40);
  plots = [timeline, memory];
  fillLegend();
  layOut();
  plots.forEach(listen);
  for (const button of document.querySelectorAll('[data-zoom]')) {
    button.addEventListener('click', () => {
      const factor = Number(button.dataset.zoom);
      if (factor) {
        zoom(factor, (view.begin + view.end) / 2);
      } else {
        show(0, data.total);
      }
    });
  }
  window.addEventListener('resize', layOut);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', layOut);
}

start();
