// What would help a group that waits, when it will probably start, and where its members fit: asked of the server.

import { byId, list, make, say, setHidden, showStart } from "./text.js";

// A question without an answer is asked again so much later, each time twice as late, as long as the group is looked at.
const AGAIN_MS = 10_000,
  LATEST_MS = 320_000;
let asking = new AbortController(),
  asked = "",
  again = 0;

// A question whose answer is no longer needed would delay the next one.
export function askNoMore() {
  asking.abort();
  clearTimeout(again);
  asked = "";
  show({});
  say(byId("helping"), "");
}

// Ask once for each sentence that the group shows: another sentence has other remedies.
export async function askWhatHelps(group) {
  const question = [group.namespace, group.name, group.phase, group.reason].join(" ");
  if (question === asked) return;
  askNoMore();
  asked = question;
  const mine = (asking = new AbortController());
  say(byId("helping"), "Finding out what would help …");
  await answer(group, mine.signal, AGAIN_MS);
}

async function answer(group, signal, againMs) {
  const found = await answerTo(group, signal);
  if (signal.aborted) return;
  say(byId("helping"), found.error || ((found.helps || []).length ? "What would help:" : "No remedy is known."));
  show(found);
  if (found.error) again = setTimeout(() => answer(group, signal, Math.min(2 * againMs, LATEST_MS)), againMs);
}

async function answerTo({ namespace, name }, signal) {
  try {
    const answer = await fetch(`/helps/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, { signal });
    return answer.ok ? await answer.json() : { error: await answer.text() };
  } catch (error) {
    return { error: error.message };
  }
}

function show({ helps = [], besides = [], shortfall = null, expectedStart = null }) {
  byId("helps").replaceChildren(...helps.map((each) => make("li", each)));
  say(byId("besides"), besides.join(" "));
  showStart(byId("expected"), expectedStart);
  setHidden(byId("fitting"), !(shortfall && shortfall.nodeGroups.length));
  if (!shortfall) return;
  say(byId("fits"), `${shortfall.fits} of ${shortfall.wanted} members fit now.`);
  byId("where").tBodies[0].replaceChildren(
    ...shortfall.nodeGroups.map((found) => {
      const row = make("tr");
      const why = found.obstacles.map(
        (each) => `${each.nodes} × ${each.reason}${each.resource ? ` ${each.resource}` : ""}`,
      );
      row.append(
        make("td", found.name),
        make("td", String(found.nodes), "number"),
        make("td", String(found.members), "number"),
        make("td", list(why) || "–"),
      );
      return row;
    }),
  );
}
