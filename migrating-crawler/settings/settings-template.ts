/**
 * Writes a crawler's settings file for the person who looks after the machine: every setting with what it does, its
 * unit and its default. What is given stands there as it is; all else stands behind a `#`, ready to be changed.
 */
import { stringify } from "smol-toml";
import { type SettingWords, settingTables } from "./setting-words.ts";

type Values = Readonly<Record<string, unknown>>;

const opening = `# Settings of this Nearcrawl crawler. Nobody but you can change them: the coordinator can raise no limit.
#
# A line that begins with '#' is not in force: its default is. Take the '#' away, change the value, save. The crawler
# looks at this file while it runs and takes a change within seconds; it says so in its log, and of a mistake it says
# the line and goes on under the settings from before. A line belongs to the [table] above it, whose '#' goes, too.
`;

/** `values`: as in the settings that `crawlerConfig` takes, sections nested. Text that `readSettingsFile` reads. */
export function settingsTemplate(values: Values): string {
  const tables = settingTables.map((table) => tableText(table, valuesAt(values, table.path)));
  return [opening, othersText(values), ...tables].filter((text) => text !== "").join("\n");
}

type Table = (typeof settingTables)[number];

function tableText(table: Table, values: Values | null): string {
  const header = table.path.length === 0 ? "" : `[${table.path.join(".")}]\n`;
  const isInForce = values !== null || !table.isOptional;
  const lines = table.settings.map((setting) => settingText(setting, values?.[setting.name]));
  return `${commented(table.words)}${isInForce ? header : commented(header.trimEnd())}\n${lines.join("\n").trimEnd()}\n`;
}

function settingText({ name, words, value }: SettingWords, given: unknown): string {
  const line = given === undefined || given === null ? `# ${lineOf(name, value)}` : lineOf(name, given);
  return words === "" ? line : `${commented(words)}${line}\n`;
}

/** What a crawler that has not joined a coordinator needs besides: where that is, name, key and folder. */
function othersText(values: Values): string {
  const known = new Set(
    settingTables.flatMap(({ path, settings }) => path[0] ?? settings.map(({ name }) => name)),
  );
  const others = Object.entries(values).filter(([name, value]) => !known.has(name) && value != null);
  return others.map(([name, value]) => `${lineOf(name, value)}\n`).join("");
}

function lineOf(name: string, value: unknown): string {
  return stringify({ [name]: value }).trimEnd();
}

function commented(words: string): string {
  return words
    .split("\n")
    .map((line) => `# ${line}`.trimEnd())
    .join("\n")
    .concat("\n");
}

function valuesAt(values: Values, path: readonly string[]): Values | null {
  let at: unknown = values;
  for (const step of path) at = (at as Values | null | undefined)?.[step];
  return typeof at === "object" && at !== null ? (at as Values) : null;
}
