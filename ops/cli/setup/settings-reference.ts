/**
 * Generates the reference of the coordinator's settings from their schema: `npm run reference` writes ops/runbook/settings.md.
 */
import { z } from "zod";
import { configSchema } from "#coordinator/config";
import { isPolicyName, policyGroups, rangeText, valueText } from "#coordinator/run/settings/catalogue";
import { settingWords } from "#coordinator/setting-words";

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

/** Settings that are read once at the start, in the schema's order. */
export function startSettings(): readonly SettingShape[] {
  const root = z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" }) as JsonShape;
  return leavesOf(root, "").filter(({ name }) => !isPolicyName(name));
}

function leavesOf({ properties = {} }: JsonShape, prefix: string): SettingShape[] {
  return Object.entries(properties).flatMap(([key, shape]) => {
    const name = `${prefix}${key}`;
    const value = shape.anyOf?.find(({ type }) => type !== "null") ?? shape;
    return value.properties
      ? leavesOf(value, `${name}.`)
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

export function settingsReference(): string {
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
