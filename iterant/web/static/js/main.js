// The page: which networks there are, and a panel for each.

import { Bench } from "./bench.js";
import { ChessPanel } from "./chess/panel.js";
import { fetchedJson } from "./fetching.js";
import { Loading } from "./loading.js";
import { MazePanel } from "./mazes/panel.js";
import { Network } from "./network.js";
import { Runtimes, Trouble } from "./runtime.js";
import { SumsPanel } from "./sums/panel.js";
import { Tabs } from "./tabs.js";
import { Thinker } from "./thinker.js";
import { count, Words } from "./words.js";

const PANELS = { mazes: MazePanel, "prefix-sums": SumsPanel, chess: ChessPanel };

const words = new Words(document.getElementById("words"));
const loading = new Loading(document.getElementById("loading"), words);
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
  const listed = (await listOfNetworks()).filter(({ task }) => task in PANELS);
  if (!listed.length) throw new Trouble("This page holds no network that it could show.");
  const runtimes = new Runtimes(new URLSearchParams(location.search).get("backend") ?? "auto");
  document.getElementById("page").hidden = false;
  const bench = new Bench(document, words);
  const there = Object.keys(PANELS).filter((task) => listed.some((each) => each.task === task));
  for (const task of there) document.getElementById(`tab-${task}`).hidden = false;
  const tabs = new Tabs(document.getElementById("tabs"), (task) =>
    front(task, listed, runtimes, bench).catch((error) => unopened(task, error)),
  );
  choice.addEventListener("change", () => exchange(choice.value, listed, runtimes, bench));
  const asked = there.find((task) => location.hash === `#${task}`) ?? there[0];
  tabs.show(document.getElementById(`tab-${asked}`));
}

async function listOfNetworks() {
  try {
    return await fetchedJson("networks/index.json");
  } catch {
    throw new Trouble("This page holds no networks: build it with scripts/build-page or iterant demo --build.");
  }
}

// A task that cannot be shown leaves the others alone; without any other there is no page.
function unopened(task, error) {
  loading.end();
  delete opening[task]; // asked for again, it is tried again
  if (!Object.keys(panels).length) return trouble(error);
  if (location.hash === `#${task}`) words.say(`${error.message} Choose its tab again to try again.`);
}

// Each once, however often and quickly it is asked for; one that failed may be tried again.
function load({ name, bytes }, runtimes) {
  networks[name] ??= loading
    .during(name, bytes, (progress) => Network.open(`networks/${name}/`, runtimes, progress))
    .catch((error) => {
      delete networks[name];
      throw error;
    });
  return networks[name];
}

// Bring a task's panel to the front; its first network is loaded the first time.
async function front(task, listed, runtimes, bench) {
  history.replaceState(null, "", `#${task}`);
  const own = listed.filter((each) => each.task === task);
  choice.replaceChildren(
    ...own.map(({ name, parameters }) => new Option(`${name}, ${count(parameters, "parameter")}`, name)),
  );
  bench.rest();
  opening[task] ??= begin(task, own[0], runtimes);
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

async function begin(task, about, runtimes) {
  const thinker = new Thinker(await load(about, runtimes));
  // Who asked for less motion sees it think when they press Play.
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) thinker.phase = "paused";
  const panel = new PANELS[task](document.getElementById(`panel-${task}`), thinker, words);
  follow(panel, about);
  panels[task] = panel;
  return panel;
}

// Another network for the problem in front; it begins from the start.
async function exchange(name, listed, runtimes, bench) {
  const { panel } = bench;
  if (!panel) return; // the panel is still being opened
  const about = listed.find((each) => each.name === name);
  let network;
  try {
    network = await load(about, runtimes);
  } catch (error) {
    choice.value = panel.network;
    words.say(`${error.message} ${panel.network} thinks on.`);
    return;
  }
  await panel.thinker.use(network);
  follow(panel, about);
  if (bench.panel !== panel) return; // another came to the front meanwhile
  tellNetwork(panel);
  words.say(`${name} thinks about the same problem, from the start${panel.thinker.waits}.`);
}

// Remember what a panel thinks with, and say so when that has to change.
function follow(panel, about) {
  Object.assign(panel, { network: about.name, trainedOn: about.trained_on });
  const { network } = panel.thinker;
  network.addEventListener("moved", () => panel.thinker.network === network && tellNetwork(panel));
  network.addEventListener("fellback", () => {
    tellNetwork(panel);
    words.say("WebGPU stopped computing; WebAssembly took over, and it thinks on.");
  });
}

function tellNetwork({ network, thinker, trainedOn }) {
  choice.value = network;
  const told = document.getElementById("computed");
  told.textContent = computed(thinker.network, trainedOn);
  told.title = thinker.network.fellBack?.reason ?? "";
}

function computed({ about, runtime, fellBack }, trainedOn) {
  const threads = runtime.threads > 1 ? `${runtime.threads} threads` : "one thread";
  const where = { webgpu: "WebGPU", wasm: `WebAssembly, ${threads}` }[runtime.provider];
  const why = fellBack ? ` (WebGPU is there, but ${fellBack.words})` : "";
  const learned = trainedOn ? ` and was trained on ${trainedOn}` : "";
  return `This network has ${count(about.parameters, "parameter")}${learned}. Computed in your browser by ${where}${why}.`;
}

open().catch(trouble);
