// Published numbers on mazes beside ours, as a table with a source for each.

import { fetchedJson } from "../fetching.js";

const COLUMNS = { network: "system", parameters: "parameters", exact: "exact", "any shortest path": "any shortest", source: "source" };

const element = (name, ...inside) => {
  const made = document.createElement(name);
  made.append(...inside);
  return made;
};

function sourceOf({ source, address, note }) {
  const link = element("a", source);
  link.href = address;
  return [address ? link : source, note && (source ? `; ${note}` : note)].filter(Boolean);
}

// Fills the table of a <details>, which stays hidden on pages that hold no numbers.
export async function showPublished(details) {
  const rows = await fetchedJson("published.json").catch(() => []);
  const table = details.querySelector("table");
  table.append(element("tr", ...Object.values(COLUMNS).map((title) => element("th", title))));
  let mazes = "";
  for (const row of rows) {
    if (row.mazes !== mazes) {
      const heading = element("th", row.mazes);
      heading.colSpan = Object.keys(COLUMNS).length;
      table.append(element("tr", heading));
    }
    mazes = row.mazes;
    const cells = Object.keys(COLUMNS).map((name) => (name === "source" ? sourceOf(row) : [row[name]]));
    table.append(element("tr", ...cells.map((inside) => element("td", ...inside))));
  }
  details.hidden = !rows.length;
}
