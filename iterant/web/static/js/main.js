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
const HEAVY = 100_000; // parameters from which threads pay

const words = new Words(document.getElementById("words"));
const panels = {}; // by task, once they were in front
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
  for (const { task } of listed) document.getElementById(`tab-${task}`).hidden = false;
  const tabs = new Tabs(document.getElementById("tabs"), (task) =>
    front(task, runtime, bench).catch(trouble),
  );
  const there = Object.keys(PANELS).filter((task) => listed.some((each) => each.task === task));
  const asked = there.find((task) => location.hash === `#${task}`) ?? there[0];
  tabs.show(document.getElementById(`tab-${asked}`));
}

// Bring a task's panel to the front; its network is loaded the first time.
async function front(task, runtime, bench) {
  history.replaceState(null, "", `#${task}`);
  if (panels[task]) {
    bench.attach(panels[task]);
    panels[task].draw();
    return;
  }
  words.say("Loading the network…");
  const network = await Network.open(`networks/${task}/`, runtime);
  const thinker = new Thinker(network);
  // Who asked for less motion sees it think when they press Play.
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) thinker.phase = "paused";
  const panel = new PANELS[task](document.getElementById(`panel-${task}`), thinker, words);
  panels[task] = panel;
  if (location.hash === `#${task}`) bench.attach(panel);
  document.getElementById("computed").textContent = computed(network);
  await panel.generate();
  panel.ready = true;
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
