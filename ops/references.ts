/**
 * Generates the runbook's reference pages from the program: settings, alerts, commands and the API. `npm run reference`
 * writes them.
 */
import type { Command, Option } from "commander";
import { z } from "zod";
import { configSchema } from "#coordinator/config";
import { loadOperations } from "#coordinator/room-operations";
import { isPolicyName, policyGroups, rangeText, valueText } from "#coordinator/run/settings/catalogue";
import { settingWords } from "#coordinator/setting-words";
import { alertSeverities } from "#coordinator/tell/overview/alert-facts";
import { listedRules } from "#coordinator/tell/overview/alert-rules";
import type { ApiOperation } from "#coordinator/web/api-operation";
import type { Listed } from "#coordinator/web/navigation";
import { loadedProgram } from "./cli/commands.ts";

/** Returns the pages by their file names in ops/runbook. */
export async function references(): Promise<Readonly<Record<string, string>>> {
  return {
    "settings.md": settingsReference(),
    "alerts.md": alertsReference(),
    "commands.md": commandsReference(await loadedProgram(undefined)),
    "api.md": await apiReference(),
  };
}

const madeBy = (where: string) => `Made by \`npm run reference\`: change the words ${where}.`;

const severityWords = {
  critical: "Nothing is crawled, data is lost, or soon will be: look now.",
  warning: "Something is wrong, and the crawl goes on: look today.",
  info: "Worth knowing, no hurry.",
} as const;

function alertsReference(): string {
  const sections = alertSeverities.map((severity) => {
    const rules = listedRules.filter((rule) => rule.severity === severity);
    const each = rules.map(({ name, looksFor, advice, runbook, link }) =>
      [`### ${name}`, `*Looks for:* ${looksFor}. *Page:* \`${link}\`.`, advice, runbook]
        .filter(Boolean)
        .join("\n\n"),
    );
    return `## ${severity}\n\n${severityWords[severity]}\n\n${each.join("\n\n")}`;
  });
  return `# Alerts

What each alert looks for and asks for, by severity. How to have them sent to you, acknowledge and mute them: [monitoring](monitoring.md).
${madeBy("in the rules, `coordinator/tell/overview/alerts-of-*.ts`")} They have the thresholds, too, with where they come from.

${sections.join("\n\n")}
`;
}

/** These options are explained once for all commands. */
const shared = ["--home", "--database-url", "--schema", "--json", "--csv", "--watch", "--help"];

function commandsReference(program: Command): string {
  const everywhere = new Map(
    leavesOf(program)
      .flatMap(({ command }) => command.options)
      .filter(isShared)
      .map((option) => [option.long, option]),
  );
  const tops = program.commands.map((top) => {
    const leaves = leavesOf(top, top.name());
    const all = leaves.map(({ command, path }) => sectionOf(command, path));
    const says = leaves[0]?.command === top ? "" : `${top.description()}\n\n`;
    return `## nearcrawl ${top.name()}\n\n${says}${all.join("\n\n")}`;
  });
  return `# Commands

${madeBy("in the command, or in the operation that it asks")} \`nearcrawl COMMAND --help\` has examples. Many commands take:

${[...everywhere.values()].map(optionLine).join("\n")}

${tops.join("\n\n")}
`;
}

interface Leaf {
  readonly command: Command;
  readonly path: string;
}

const acts = (command: Command) => Reflect.get(command, "_actionHandler") !== null;

const leavesOf = (command: Command, path = ""): Leaf[] => [
  ...(acts(command) ? [{ command, path }] : []),
  ...command.commands.flatMap((one) => leavesOf(one, `${path} ${one.name()}`.trim())),
];

function sectionOf(command: Command, path: string): string {
  const args = command.registeredArguments.map((one) => {
    const name = `${one.name()}${one.variadic ? "..." : ""}`;
    return one.required ? `<${name}>` : `[${name}]`;
  });
  const options = command.options.filter((option) => !isShared(option)).map(optionLine);
  const usage = `\`${["nearcrawl", path, ...args].join(" ")}\`: ${inOneLine(command.description())}.`;
  return [usage.replace(/([.?!])\.$/, "$1"), ...(options.length === 0 ? [] : [options.join("\n")])].join(
    "\n\n",
  );
}

const isShared = ({ long }: Option) => shared.includes(long ?? "");

function optionLine({
  flags,
  description,
  mandatory,
  argChoices,
  defaultValue,
  defaultValueDescription,
}: Option) {
  const facts = [
    mandatory && "required",
    argChoices && `one of ${argChoices.join(", ")}`,
    defaultValue !== undefined && `default ${defaultValueDescription ?? JSON.stringify(defaultValue)}`,
  ].filter(Boolean);
  const words = [inOneLine(description), facts.join("; ")].filter((part) => part !== "").join("; ");
  return `- \`${flags}\`${words === "" ? "" : `: ${words}`}`;
}

const inOneLine = (text: string) => text.replace(/\s*\n\s*/g, " ");

async function apiReference(): Promise<string> {
  const rooms = await loadOperations();
  const tags = [...new Set(rooms.map(({ tag }) => tag))].map((tag) => {
    const operations = rooms
      .filter((room) => room.tag === tag)
      .flatMap((room) => Object.values(room.operations));
    return [
      `## ${tag}`,
      "",
      "| | scope | what it does | page |",
      "|---|---|---|---|",
      ...operations.map(apiRow),
    ].join("\n");
  });
  return `# The API

${madeBy("in the operations, the files `*-ask.ts` of the rooms")} What each takes and answers, with examples: \`/api\` of a coordinator, and
\`/api/openapi.json\`. Every answer that is a page is the page's, too: \`Accept: application/json\`, \`text/plain\` or \`format=csv\` at its address.

${tags.join("\n\n")}
`;
}

function apiRow({ method, path, needs, summary, page }: ApiOperation & Pick<Listed, "page">): string {
  const shown = method === "get" && page != null ? `\`${page}\`` : "";
  return `| \`${method.toUpperCase()} ${path}\` | ${needs ?? "none"} | ${inOneLine(summary).replaceAll("|", "\\|")} | ${shown} |`;
}

interface SettingShape {
  readonly name: string;
  readonly default: unknown;
  readonly range: string;
}

interface JsonShape {
  readonly type?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, JsonShape>>;
  readonly anyOf?: readonly JsonShape[];
}

/** Settings that are read only at the start, in the schema's order. */
export function startSettings(): readonly SettingShape[] {
  const root = z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" }) as JsonShape;
  return settingsBelow(root, "").filter(({ name }) => !isPolicyName(name));
}

function settingsBelow({ properties = {} }: JsonShape, prefix: string): SettingShape[] {
  return Object.entries(properties).flatMap(([key, shape]) => {
    const name = `${prefix}${key}`;
    const value = shape.anyOf?.find(({ type }) => type !== "null") ?? shape;
    return value.properties
      ? settingsBelow(value, `${name}.`)
      : [{ name, default: shape.default, range: rangeOf(value) }];
  });
}

function rangeOf({ type, enum: options, minimum, exclusiveMinimum, maximum }: JsonShape): string {
  if (options) return options.join(", ");
  if (type === "boolean") return "true, false";
  if (type === "array") return "a list";
  if (maximum === undefined) return "a text";
  const least = exclusiveMinimum === undefined ? `${minimum ?? 0}` : `more than ${exclusiveMinimum}`;
  return `${least} to ${maximum}`;
}

function settingsReference(): string {
  const starts = [{ name: "databaseUrl", default: undefined, range: "a text" }, ...startSettings()];
  const startRows = starts.map(
    ({ name, default: usual, range }) =>
      `| \`${name}\` | ${usual === undefined || usual === null ? "" : `\`${JSON.stringify(usual)}\``} | ${range} | ${settingWords[name] ?? ""} |`,
  );
  const groups = policyGroups.map(({ title, policies }) =>
    [
      `### ${title}`,
      "| policy | default | range | what it does |",
      "|---|---|---|---|",
      ...policies.map(
        (one) =>
          `| \`${one.name}\` | ${valueText(one.name, one.default)} | ${rangeText(one)} | ${one.help.replaceAll("|", "\\|")} *(${one.origin})* |`,
      ),
    ].join("\n"),
  );
  return `# The coordinator's settings

Made from the schema by \`npm run reference\`: change the words there. The file is \`coordinator.toml\` in the home folder, which
\`nearcrawl init\` writes with comments; \`nearcrawl coordinator --config FILE\` takes another one, TOML or JSON. A dot in a name
stands for a table: \`listen.port\` is \`port\` in \`[listen]\`. Unknown names and values out of range are refused with file and line.

## Read once, at the start
| setting | default | range | what it does |
|---|---|---|---|
${startRows.join("\n")}

## Policies
They can stand in the file, too. What an operator changes while the coordinator runs (\`nearcrawl policy set\`, \`/policies\`) wins over it.

${groups.join("\n\n")}
`;
}
