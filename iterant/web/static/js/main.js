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
let inFront = null; // the task in front
let wanted = ""; // the problem of the address, until it is shown
let addressing; // the timer that writes the address
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
  document.getElementById("share").addEventListener("click", () => share(bench.panel));
  const visit = () => {
    const [task, problem] = addressed();
    const known = there.includes(task);
    wanted = known ? problem : "";
    tabs.show(document.getElementById(`tab-${known ? task : there[0]}`));
  };
  window.addEventListener("hashchange", visit); // a link to another problem, or back
  visit();
}

// The address is #TASK, or #TASK/PROBLEM: a problem can be shared.
function addressed() {
  const [task, ...problem] = location.hash.slice(1).split("/");
  try {
    return [task, decodeURIComponent(problem.join("/"))];
  } catch {
    return [task, problem.join("/")]; // the panel says what is wrong with it
  }
}

const addressOf = ({ task, problem }) => `#${task}/${problem}`;

// Soon, because browsers refuse to write it a hundred times while a wall is drawn.
function address(panel) {
  clearTimeout(addressing);
  addressing = setTimeout(() => inFront === panel.task && history.replaceState(null, "", addressOf(panel)), 300);
}

async function share(panel) {
  if (!panel?.ready) return;
  history.replaceState(null, "", addressOf(panel));
  try {
    await navigator.clipboard.writeText(location.href);
    words.say("Copied: the link opens the page with this problem.");
  } catch {
    // Browsers give no clipboard to pages without https, except on this machine.
    words.say("Copy the address of this page: it opens the page with this problem.");
  }
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
  if (inFront === task) words.say(`${error.message} Choose its tab again to try again.`);
}

// Each once, however often and quickly it is asked for; one that failed may be tried again.
function load({ name, bytes }, runtimes) {
  networks[name] ??= loading
    .during(name, bytes, (progress) => Network.open(`networks/${encodeURIComponent(name)}/`, runtimes, progress))
    .catch((error) => {
      delete networks[name];
      throw error;
    });
  return networks[name];
}

// Bring a task's panel to the front; its first network is loaded the first time.
async function front(task, listed, runtimes, bench) {
  const problem = wanted;
  [inFront, wanted] = [task, ""];
  if (!problem) history.replaceState(null, "", panels[task]?.ready ? addressOf(panels[task]) : `#${task}`);
  const own = listed.filter((each) => each.task === task);
  choice.replaceChildren(
    ...own.map(({ name, parameters }) => new Option(`${name}, ${count(parameters, "parameter")}`, name)),
  );
  bench.rest();
  opening[task] ??= begin(task, own[0], runtimes);
  const panel = await opening[task];
  if (inFront !== task) return; // another came to the front meanwhile
  bench.attach(panel);
  tellNetwork(panel);
  panel.draw();
  if (panel.begun && !problem) return;
  panel.begun = true;
  await show(panel, problem);
  panel.ready = true;
}

// The problem of the address, or a new one.
async function show(panel, problem) {
  if (!problem) return panel.generate();
  try {
    await panel.open(problem);
  } catch (error) {
    await panel.generate();
    panel.thinker.pause(); // or the message would soon be replaced
    words.say(`${error.message} Press Play for this one instead.`);
  }
}

async function begin(task, about, runtimes) {
  const thinker = new Thinker(await load(about, runtimes));
  // Who asked for less motion sees it think when they press Play.
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) thinker.phase = "paused";
  const panel = new PANELS[task](document.getElementById(`panel-${task}`), thinker, words);
  Object.assign(panel, { task, training: about.training });
  for (const event of ["begun", "disturbed"]) thinker.addEventListener(event, () => address(panel));
  follow(panel, about);
  panels[task] = panel;
  return panel;
}

// Another network for the problem in front; it begins at iteration 0.
async function exchange(name, listed, runtimes, bench) {
  const { panel } = bench;
  if (!panel) return; // the panel is still being opened
  const about = listed.find((each) => each.name === name);
  let network;
  try {
    network = await load(about, runtimes);
  } catch (error) {
    choice.value = panel.network;
    words.say(`${error.message} ${panel.network} continues.`);
    return;
  }
  panel.training = about.training;
  await panel.thinker.use(network);
  follow(panel, about);
  if (bench.panel !== panel) return; // another came to the front meanwhile
  tellNetwork(panel);
  words.say(`${name} begins the same problem at iteration 0${panel.thinker.waits}.`);
}

// Remember what a panel thinks with, and say so when that has to change.
function follow(panel, about) {
  Object.assign(panel, { network: about.name, trainedOn: about.trained_on });
  const { network } = panel.thinker;
  network.addEventListener("moved", () => panel.thinker.network === network && tellNetwork(panel));
  network.addEventListener("fellback", () => {
    tellNetwork(panel);
    words.say("WebGPU stopped computing; WebAssembly continues from the same state.");
  });
}

function tellNetwork({ network, task, thinker, training, trainedOn }) {
  choice.value = network;
  const { problems, shown } = (training && PANELS[task].trainedOn(training, trainedOn)) ?? {};
  const main = document.createElement("strong");
  const { parameters, kind } = thinker.network.about;
  main.textContent = `recurrent network with ${count(parameters, "parameter")}`;
  const trained = problems ? `, trained on ${problems}${shown},` : "";
  const first = thinker.network.heavy ? "A " : "A small ";
  document.getElementById("what").replaceChildren(first, main, `${trained} solves ${PANELS[task].harder(kind)} by iterating longer.`);
  const lists = [...document.querySelectorAll(".how")]; // the first is for all kinds without their own
  const own = lists.find((list) => list.dataset.kind === kind) ?? lists[0];
  for (const list of lists) list.hidden = list !== own;
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
