// The page: which networks there are, and a panel for each.

import { Bench } from "./bench.js";
import { ChessPanel } from "./chess/panel.js";
import { MazePanel } from "./mazes/panel.js";
import { Network } from "./network.js";
import { openRuntime, Trouble } from "./runtime.js";
import { SumsPanel } from "./sums/panel.js";
import { Tabs } from "./tabs.js";
import { Thinker } from "./thinker.js";
import { count, Words } from "./words.js";

const PANELS = { mazes: MazePanel, "prefix-sums": SumsPanel, chess: ChessPanel };
const HEAVY = 1_000_000; // parameters from which threads pay

const words = new Words(document.getElementById("words"));
const choice = document.getElementById("networks");
const panels = {}; // by task, once they were in front
const opening = {}; // promises of them, from the first click on
const networks = {}; // promises, by name
window.iterant = { panels }; // for tests, and for whoever looks behind the scenes

function trouble(error) {
  const known = error instanceof Trouble;
  const box = document.getElementById("trouble");
  box.textContent = known ? error.message : `Something went wrong: ${error.message}`;
  box.classList.add("shown");
  document.getElementById("page").hidden = true;
  if (!known) console.error(error);
}

async function open() {
  document.getElementById("trouble").classList.remove("waiting");
  const response = await fetch("networks/index.json");
  if (!response.ok) {
    throw new Trouble("This page holds no networks: build it with scripts/build-page or iterant demo --build.");
  }
  const listed = (await response.json()).filter(({ task }) => task in PANELS);
  if (!listed.length) throw new Trouble("This page holds no network that it could show.");
  const wanted = new URLSearchParams(location.search).get("backend") ?? "auto";
  const heavy = listed.some(({ parameters }) => parameters > HEAVY);
  document.getElementById("page").hidden = false;
  words.say("Loading the runtime…");
  const runtime = await openRuntime({ wanted, heavy });
  const bench = new Bench(document, words);
  const there = Object.keys(PANELS).filter((task) => listed.some((each) => each.task === task));
  for (const task of there) document.getElementById(`tab-${task}`).hidden = false;
  const tabs = new Tabs(document.getElementById("tabs"), (task) =>
    front(task, listed, runtime, bench).catch(trouble),
  );
  choice.addEventListener("change", () => exchange(choice.value, runtime, bench).catch(trouble));
  const asked = there.find((task) => location.hash === `#${task}`) ?? there[0];
  tabs.show(document.getElementById(`tab-${asked}`));
}

// Each once, however often and quickly it is asked for.
function load(name, runtime) {
  networks[name] ??= Network.open(`networks/${name}/`, runtime);
  return networks[name];
}

// Bring a task's panel to the front; its first network is loaded the first time.
async function front(task, listed, runtime, bench) {
  history.replaceState(null, "", `#${task}`);
  const own = listed.filter((each) => each.task === task);
  choice.replaceChildren(
    ...own.map(({ name, parameters }) => new Option(`${name}, ${count(parameters, "parameter")}`, name)),
  );
  if (!opening[task]) words.say("Loading the network…");
  opening[task] ??= begin(task, own[0].name, runtime);
  const panel = await opening[task];
  if (location.hash !== `#${task}`) return; // another came to the front meanwhile
  bench.attach(panel);
  tellNetwork(panel);
  panel.draw();
  if (panel.begun) return;
  panel.begun = true;
  await panel.generate();
  panel.ready = true;
}

async function begin(task, name, runtime) {
  const thinker = new Thinker(await load(name, runtime));
  // Who asked for less motion sees it think when they press Play.
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) thinker.phase = "paused";
  const panel = new PANELS[task](document.getElementById(`panel-${task}`), thinker, words);
  panel.network = name;
  panels[task] = panel;
  return panel;
}

// Another network for the problem in front; it begins from the start.
async function exchange(name, runtime, bench) {
  const { panel } = bench;
  words.say("Loading the network…");
  const network = await load(name, runtime);
  panel.network = name;
  await panel.thinker.use(network);
  tellNetwork(panel);
  words.say(`${name} thinks about the same problem, from the start${panel.thinker.waits}.`);
}

function tellNetwork({ network, thinker }) {
  choice.value = network;
  document.getElementById("computed").textContent = computed(thinker.network);
}

function computed({ about, runtime, fellBack }) {
  const where = {
    webgpu: "WebGPU",
    wasm: runtime.threads > 1 ? `WebAssembly, ${runtime.threads} threads` : "WebAssembly, one thread",
  }[runtime.provider];
  const why = fellBack ? " (WebGPU was tried and did not compute rightly)" : "";
  return `This network has ${count(about.parameters, "parameter")}. Computed in your browser by ${where}${why}.`;
}

open().catch(trouble);
