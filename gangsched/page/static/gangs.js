// What every panel shows of a gang: its name, which opens its drawer, and the reason of its state as a chip.

import { belongs } from "./mark.js";
import { make, say } from "./text.js";

const TONES = {
  NeverFits: "bad",
  GangFailed: "bad",
  TimedOut: "bad",
  PodsFailAtOnce: "bad",
  Preempted: "bad",
  WaitsForVictims: "busy",
  Binding: "busy",
  PreBinding: "busy",
};

export function reasonOf(group) {
  return group.reason || group.phase || "Unseen";
}

export function showChip(chip, group) {
  say(chip, reasonOf(group));
  const kind = `chip ${TONES[reasonOf(group)] || ""}`.trim();
  if (chip.className !== kind) chip.className = kind;
}

// A button with the gang's name. The drawer listens to all of them.
export function opener(gang) {
  const button = make("button", gang, "name");
  button.type = "button";
  belongs(button, gang);
  return button;
}
