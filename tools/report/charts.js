'use strict';
// What is drawn: data, the visible interval, bars and curves.

const kWorks = [
  { name: 'Forward', colour: '--forward' },
  { name: 'Backward', colour: '--backward' },
  { name: 'Weight gradient', colour: '--weight' },
];
const kAxis = 24;

/// The bytes that a deflated text in base64 stands for.
async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(
    new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

/// Stages with typed arrays; `total` is at least the end of the last bar.
async function readData() {
  const data = JSON.parse(document.getElementById('data').textContent);
  const buffer = await inflate(data.columns);
  let at = 0;
  // Every column starts at a multiple of four bytes.
  const take = (Type, length) => {
    const column = new Type(buffer, at, length);
    at += Math.ceil(column.byteLength / 4) * 4;
    return column;
  };
  for (const stage of data.stages) {
    stage.begin = take(Float32Array, stage.bars);
    stage.end = take(Float32Array, stage.bars);
    stage.work = take(Uint8Array, stage.bars);
    stage.chunk = take(Uint16Array, stage.bars);
    stage.microBatch = take(Uint32Array, stage.bars);
    stage.time = take(Float32Array, stage.points);
    stage.bytes = take(Float32Array, stage.points);
    data.total = Math.max(data.total, ...stage.end.slice(-1));
  }
  data.total = data.total || 1;
  return data;
}

/// The index of the first element above `value`; `values` ascend.
function firstAbove(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > value) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

function number(value) {
  return String(Number(value.toPrecision(5)));
}

function humanBytes(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.length; ++unit) {
    bytes /= 1024;
  }
  return `${Number(bytes.toPrecision(4))} ${units[unit]}`;
}

/// Colours of the page as it is now, light or dark.
function readTheme(chunks) {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  const theme = { font: getComputedStyle(document.body).fontFamily };
  for (const name of ['text', 'muted', 'rule', 'lane', 'curve', 'ground']) {
    theme[name] = value(`--${name}`);
  }
  // Later chunks are paler; dark text goes on pale bars.
  theme.bars = kWorks.map(({ colour }) => {
    const rgb = value(colour).match(/[0-9a-f]{2}/gi).map((h) => parseInt(h, 16));
    return Array.from({ length: chunks }, (_, chunk) => {
      const pale = chunks > 1 ? 0.5 * chunk / (chunks - 1) : 0;
      const mixed = rgb.map((c) => Math.round(c + (255 - c) * pale));
      const light = (299 * mixed[0] + 587 * mixed[1] + 114 * mixed[2]) / 1000;
      return { fill: `rgb(${mixed})`, text: light > 130 ? '#10161b' : '#ffffff' };
    });
  });
  return theme;
}

/// A canvas and one above it for what the pointer shows, in CSS pixels.
class Plot {
  /// Rows are at most `highest` high.
  constructor(id, view, rows, highest) {
    this.section = document.getElementById(id);
    [this.canvas, this.over] = this.section.querySelectorAll('canvas');
    Object.assign(this, { view, rows, highest });
  }

  resize(row) {
    this.row = row;
    this.section.style.setProperty('--row', `${row}px`);
    this.width = this.canvas.parentElement.clientWidth;
    this.height = kAxis + this.rows * row;
    this.contexts = [this.canvas, this.over].map((canvas) => {
      const ratio = window.devicePixelRatio || 1;
      canvas.style.height = `${this.height}px`;
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(this.height * ratio);
      const context = canvas.getContext('2d');
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      return context;
    });
  }

  x(time) {
    const { begin, end } = this.view;
    return (time - begin) / (end - begin) * this.width;
  }

  time(x) {
    const { begin, end } = this.view;
    return begin + x / this.width * (end - begin);
  }

  top(stage) { return kAxis + stage * this.row; }

  /// The stage under a height, or -1.
  stageAt(y) {
    const stage = Math.floor((y - kAxis) / this.row);
    return stage >= 0 && stage < this.rows ? stage : -1;
  }

  /// Lanes, and a time every hundred pixels or so.
  drawGrid(context, theme) {
    const gap = this.row >= 20 ? 3 : 1;
    context.clearRect(0, 0, this.width, this.height);
    context.fillStyle = theme.lane;
    for (let stage = 0; stage < this.rows; ++stage) {
      context.fillRect(0, this.top(stage) + gap, this.width, this.row - 2 * gap);
    }
    const { begin, end } = this.view;
    const least = (end - begin) * 100 / this.width;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].find((s) => s * power >= least) * power;
    context.font = `11px ${theme.font}`;
    context.textBaseline = 'alphabetic';
    for (let i = Math.ceil(begin / step); i * step <= end; ++i) {
      const x = this.x(i * step);
      const text = number(i * step);
      const left = x - context.measureText(text).width / 2;
      context.fillStyle = theme.rule;
      context.fillRect(Math.round(x), kAxis - 6, 1, this.height - kAxis + 6);
      context.fillStyle = theme.muted;
      context.fillText(text, Math.max(0, Math.min(left,
        this.width - context.measureText(text).width)), kAxis - 10);
    }
    return gap;
  }
}

class TimelinePlot extends Plot {
  draw(stages, theme) {
    const [context] = this.contexts;
    const gap = this.drawGrid(context, theme);
    const height = this.row - 2 * gap;
    const sizes = [12, 9].map((size) => {
      const font = `${Math.min(size, height - 1)}px ${theme.font}`;
      context.font = font;
      return { font, digit: context.measureText('0').width };
    });
    context.textBaseline = 'middle';
    for (let s = 0; s < stages.length; ++s) {
      const { begin, end, work, chunk, microBatch } = stages[s];
      const y = this.top(s) + gap;
      for (let i = firstAbove(end, this.view.begin);
        i < begin.length && begin[i] < this.view.end; ++i) {
        const x = this.x(begin[i]);
        const width = this.x(end[i]) - x;
        const colour = theme.bars[work[i]][chunk[i]];
        context.fillStyle = colour.fill;
        // A hair between bars that can be told apart. Narrow ones reach below
        // the next, so that no lane shows where two share a pixel.
        const touch = begin[i + 1] <= end[i] ? 1 : 0;
        context.fillRect(x, y, width > 4 ? width - 1 : width + touch, height);
        if (width < 8 || height < 9) {
          continue;
        }
        const text = String(microBatch[i]);
        const size = sizes.find(
          ({ digit }) => width > digit * text.length + 3);
        if (size) {
          const left = Math.max(x, 0);
          const right = Math.min(x + width, this.width);
          const middle = (left + right - 1 - size.digit * text.length) / 2;
          context.font = size.font;
          context.fillStyle = colour.text;
          context.fillText(text, Math.max(middle, x + 1), y + height / 2 + 0.5);
        }
      }
    }
  }

  /// The bar of a stage at a time, or -1.
  barAt(stage, time) {
    const i = firstAbove(stage.end, time);
    return i < stage.begin.length && stage.begin[i] <= time ? i : -1;
  }

  /// Frames all that is done for one micro-batch.
  frame(stages, microBatch, theme) {
    const context = this.contexts[1];
    context.strokeStyle = theme.text;
    context.lineWidth = 1.5;
    for (let s = 0; s < stages.length; ++s) {
      const { begin, end, microBatch: numbers } = stages[s];
      for (let i = firstAbove(end, this.view.begin);
        i < begin.length && begin[i] < this.view.end; ++i) {
        if (numbers[i] === microBatch) {
          const x = this.x(begin[i]);
          context.strokeRect(x, this.top(s) + 1.5,
            Math.max(1, this.x(end[i]) - x - 1), this.row - 3);
        }
      }
    }
  }
}

class MemoryPlot extends Plot {
  draw(stages, theme) {
    const [context] = this.contexts;
    const gap = this.drawGrid(context, theme);
    const height = this.row - 2 * gap;
    let most = 1;
    for (const { bytes } of stages) {
      most = bytes.reduce((a, b) => Math.max(a, b), most);
    }
    context.fillStyle = theme.curve;
    for (let s = 0; s < stages.length; ++s) {
      const { time, bytes } = stages[s];
      const bottom = this.top(s) + this.row - gap;
      context.beginPath();
      // What is shorter than a pixel counts with its largest.
      let left = 0;
      let largest = 0;
      for (let i = Math.max(0, firstAbove(time, this.view.begin) - 1);
        i < time.length && time[i] < this.view.end; ++i) {
        const next = i + 1 < time.length ? time[i + 1] : Infinity;
        const right = Math.min(this.width, this.x(next));
        if (largest === 0) {
          left = Math.max(0, this.x(time[i]));
        }
        largest = Math.max(largest, bytes[i]);
        if (right - left >= 1 || next >= this.view.end) {
          const tall = largest / most * height;
          context.rect(left, bottom - tall, right - left, tall);
          largest = 0;
        }
      }
      context.fill();
    }
  }

  /// The bytes of a stage at a time.
  bytesAt(stage, time) {
    return stage.bytes[Math.max(0, firstAbove(stage.time, time) - 1)] ?? 0;
  }
}
