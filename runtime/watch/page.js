"use strict";
// Frames come from the page itself (a recorded game) or from the server's event stream (live).
const MOVES = ["up", "down", "left", "right"];
const ARROWS = { up: "▲", down: "▼", left: "◀", right: "▶" };
const COLORS = ["#3b82f6", "#ef4444", "#22c55e", "#f59e0b", "#a855f7", "#06b6d4", "#ec4899", "#84cc16"];
const KEPT_GAMES = 12;
const KEPT_TURNS = 2000;

const games = new Map();
let shown = null;

// Names come from outside: they are only ever set as text.
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function drawing(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function take(frame) {
  const key = frame.game + "\n" + frame.you;
  let game = games.get(key);
  if (!game) {
    game = { key, frames: [], at: 0, follow: true, seats: [], over: false };
    games.set(key, game);
    if (games.size > KEPT_GAMES) forget();
  }
  for (const snake of frame.board.snakes || []) {
    if (!game.seats.includes(snake.id)) game.seats.push(snake.id);
  }
  game.over = game.over || frame.over;
  game.frames.push(frame);
  if (game.frames.length > KEPT_TURNS) game.frames.shift();
  if (game.follow) game.at = game.frames.length - 1;
  return game;
}

function forget() {
  for (const [key, game] of games) {
    if (key !== shown && (game.over || games.size > KEPT_GAMES)) {
      games.delete(key);
      return;
    }
  }
}

function color(game, id) {
  return COLORS[Math.max(0, game.seats.indexOf(id)) % COLORS.length];
}

function board(game, frame) {
  const { width, height } = frame.board;
  const snakes = frame.board.snakes || [];
  const label = `board at turn ${frame.turn}, ${snakes.length} snakes`;
  const svg = drawing("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const square = (kind, x, y, inset, round) =>
    drawing("rect", {
      class: kind, x: x + inset, y: height - 1 - y + inset,
      width: 1 - 2 * inset, height: 1 - 2 * inset, rx: round,
    });
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) svg.append(square("square", x, y, 0.04, 0.12));
  for (const p of frame.board.hazards || []) svg.append(square("hazard", p.x, p.y, 0, 0));
  for (const p of frame.board.food || []) {
    svg.append(drawing("circle", { class: "food", cx: p.x + 0.5, cy: height - p.y - 0.5, r: 0.25 }));
  }
  for (const snake of snakes) svg.append(body(snake, height, color(game, snake.id), snake.id === frame.you));
  return svg;
}

function body(snake, height, ink, own) {
  const group = drawing("g");
  const points = snake.body.map((p) => [p.x + 0.5, height - p.y - 0.5]);
  let path = "";
  points.forEach(([x, y], i) => {
    // A step across the edge of a wrapped board begins a new line.
    const joined = i > 0 && Math.abs(points[i - 1][0] - x) + Math.abs(points[i - 1][1] - y) <= 1;
    path += `${joined ? "L" : "M"}${x} ${y}`;
    if (!joined) path += `L${x} ${y}`;
  });
  group.append(drawing("path", {
    d: path, fill: "none", stroke: ink, "stroke-width": 0.66,
    "stroke-linecap": "round", "stroke-linejoin": "round",
  }));
  const [x, y] = points[0];
  group.append(drawing("circle", { cx: x, cy: y, r: 0.44, fill: ink }));
  const mark = drawing("text", { x, y: y + 0.18 });
  mark.textContent = own ? "★" : "●";
  group.append(mark);
  return group;
}

function track(share, ink) {
  const fill = element("div", { class: "fill" });
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  if (ink) fill.style.background = ink;
  return element("div", { class: "track" }, fill);
}

function decision(frame) {
  const card = element("section", { class: "card", id: "decision" }, element("h2", {}, "decision"));
  const d = frame.decided;
  if (!d) {
    card.append(element("p", { class: "soft" }, frame.over ? "the game is over" : "none is recorded for this turn"));
    return card;
  }
  card.append(element("div", { class: "big" }, `${ARROWS[d.move]} ${d.move}`));
  card.append(element("div", {}, d.reason.replaceAll("_", " ")));
  const times = `${d.answer_ms.toFixed(1)} ms of ${d.budget_ms.toFixed(0)} ms`;
  card.append(element("div", { class: "soft" }, times), track(d.answer_ms / Math.max(d.budget_ms, 1)));
  const table = element("table", {});
  const head = ["", "policy", "", "search", "proof"].map((text) => element("th", {}, text));
  table.append(element("tr", {}, ...head));
  MOVES.forEach((move, i) => table.append(moveRow(d, move, i)));
  card.append(table, facts(d));
  return card;
}

function moveRow(d, move, i) {
  const share = d.policy ? d.policy[i] : null;
  const score = d.search_scores ? d.search_scores[i] : null;
  const proof = d.search_labels ? d.search_labels[i] : "none";
  const words = proof === "none" ? "" : `${proof} in ${d.search_distances[i]}`;
  return element("tr", { class: move === d.move ? "chosen" : "" },
    element("td", {}, `${ARROWS[move]} ${move}`),
    element("td", {}, share === null ? "–" : `${(share * 100).toFixed(1)} %`),
    element("td", { class: "bar" }, track(share || 0)),
    element("td", {}, score === null ? "–" : String(score)),
    element("td", { class: proof }, words));
}

function facts(d) {
  const words = [];
  if (d.value !== null) words.push(`value ${d.value.toFixed(2)}`);
  if (d.stage) {
    const found = d.oracle_added ? `, ${d.oracle_added} found in ${d.oracle_rounds} looks` : "";
    words.push(`equilibrium of ${d.stage} (${d.plies} turns, ${d.leaves} boards${found}), gap ${d.gap.toFixed(3)}`, `solved in ${d.solve_ms.toFixed(1)} ms`);
  }
  if (d.search_depth !== null) words.push(`depth ${d.search_depth}`, `${d.search_nodes.toLocaleString("en")} positions`);
  if (d.search_ms !== null) words.push(`search ${d.search_ms.toFixed(1)} ms`);
  if (d.search_line && d.search_line.length) {
    words.push(`expects ${d.search_line.slice(0, 12).map((m) => ARROWS[m]).join(" ")}`);
  }
  words.push(`model ${d.model}`, `on ${d.backend}`);
  return element("p", { class: "soft" }, words.join(" · "));
}

// What the equilibrium expects of a snake: its likely moves, and what the position is worth to it.
function mixture(seat) {
  if (!seat) return element("td", {});
  const moves = MOVES.map((move, i) => [seat.policy[i], ARROWS[move]]).filter(([share]) => share >= 0.01);
  moves.sort((a, b) => b[0] - a[0]);
  const words = moves.map(([share, arrow]) => `${arrow} ${Math.round(share * 100)} %`).join(" ");
  return element("td", {}, `${words} · ${seat.utility.toFixed(2)}`, track(seat.utility));
}

function snakes(game, frame) {
  const table = element("table", {});
  for (const snake of frame.board.snakes || []) {
    const swatch = element("span", { class: "swatch" });
    swatch.style.background = color(game, snake.id);
    table.append(element("tr", { class: snake.id === frame.you ? "you" : "" },
      element("td", {}, swatch, (snake.name || snake.id).slice(0, 30)),
      element("td", { class: "bar" }, track(snake.health / 100, color(game, snake.id))),
      element("td", {}, String(snake.health)),
      element("td", { class: "soft" }, `length ${snake.body.length}`),
      mixture((frame.seats || []).find((seat) => seat.id === snake.id))));
  }
  return element("section", { class: "card", id: "snakes" }, element("h2", {}, "snakes"), table);
}

function times(game) {
  const last = game.frames.slice(0, game.at + 1).filter((f) => f.decided).slice(-120).map((f) => f.decided);
  const card = element("section", { class: "card", id: "times" }, element("h2", {}, "answer time, last 120 turns"));
  if (!last.length) return card;
  const top = Math.max(...last.map((d) => d.answer_ms), 1) * 1.1;
  const budget = last[last.length - 1].budget_ms;
  const x = (i) => (i / Math.max(1, last.length - 1)) * 300;
  const y = (ms) => 80 - (ms / top) * 80;
  const path = last.map((d, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(d.answer_ms).toFixed(1)}`).join("");
  const svg = drawing("svg", { class: "times", viewBox: "0 0 300 80", role: "img", "aria-label": "answer times" });
  svg.append(drawing("path", { d: path + (last.length === 1 ? `L300 ${y(last[0].answer_ms)}` : "") }));
  if (budget <= top) svg.append(drawing("line", { x1: 0, x2: 300, y1: y(budget), y2: y(budget) }));
  const worst = Math.max(...last.map((d) => d.answer_ms));
  card.append(svg, element("p", { class: "soft" }, `longest ${worst.toFixed(1)} ms, budget now ${budget.toFixed(0)} ms`));
  return card;
}

function go(game, at) {
  game.at = Math.max(0, Math.min(game.frames.length - 1, at));
  game.follow = game.at === game.frames.length - 1;
  draw();
}

function controls(game) {
  const button = (text, label, at) => {
    const node = element("button", { type: "button", "aria-label": label }, text);
    node.addEventListener("click", () => go(game, at()));
    return node;
  };
  const slider = element("input", { type: "range", min: 0, max: game.frames.length - 1, "aria-label": "turn" });
  slider.value = String(game.at);
  slider.addEventListener("input", () => go(game, Number(slider.value)));
  return element("div", { class: "controls" },
    button("|◀", "first turn", () => 0), button("◀", "turn before", () => game.at - 1), slider,
    button("▶", "next turn", () => game.at + 1), button("▶|", "last turn", () => game.frames.length - 1));
}

function draw() {
  const list = document.getElementById("games");
  const focused = document.activeElement && document.activeElement.getAttribute("aria-label");
  list.replaceChildren();
  for (const game of games.values()) {
    const frame = game.frames[game.frames.length - 1];
    const text = `${game.over ? "over" : "running"} · ${game.key.slice(0, 8)} · turn ${frame.turn}`;
    const node = element("button", { type: "button", "aria-pressed": String(game.key === shown) }, text);
    node.addEventListener("click", () => { shown = game.key; draw(); });
    list.append(node);
  }
  list.hidden = games.size < 2;
  const game = games.get(shown);
  const main = document.getElementById("game");
  main.hidden = !game;
  if (!game) return;
  const frame = game.frames[game.at];
  const left = element("section", { class: "card" }, element("h2", {}, `turn ${frame.turn}`), board(game, frame), controls(game));
  const right = element("div", { class: "column" }, decision(frame), snakes(game, frame), times(game));
  main.replaceChildren(left, right);
  // Drawing anew must not take the keyboard's place away.
  if (focused) main.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}

document.addEventListener("keydown", (event) => {
  const game = games.get(shown);
  if (!game || event.target.tagName === "INPUT") return;
  const steps = { ArrowLeft: game.at - 1, ArrowRight: game.at + 1, Home: 0, End: game.frames.length - 1 };
  if (event.key in steps) {
    event.preventDefault();
    go(game, steps[event.key]);
  }
});

function say(text) {
  document.getElementById("state").textContent = text;
}

function live() {
  const source = new EventSource("watch/events");
  source.addEventListener("open", () => say("connected, waiting for a move"));
  source.addEventListener("error", () => say("not connected, trying again"));
  source.addEventListener("frame", (event) => {
    const game = take(JSON.parse(event.data));
    const current = games.get(shown);
    if (!current || (current.over && current.follow)) shown = game.key;
    const running = [...games.values()].filter((g) => !g.over).length;
    say(`connected, ${running} running ${running === 1 ? "game" : "games"}`);
    draw();
  });
}

const recorded = JSON.parse(document.getElementById("frames").textContent);
if (recorded === null) {
  live();
} else {
  recorded.forEach(take);
  for (const game of games.values()) game.at = 0, game.follow = false;
  shown = games.size ? [...games.keys()][0] : null;
  say(`${recorded.length} turns`);
  draw();
}
