/**
 * The line on which a setting stands in a file: parsers give values without their places. TOML is read line by
 * line (tables, dotted and quoted keys; what lies in strings and arrays of several lines is passed over), JSON by
 * the order of its keys.
 */

/** Counted from 1; that of the nearest thing around the setting when it has no line of its own; null: nowhere. */
export function lineOfSetting(text: string, path: readonly string[], isToml: boolean): number | null {
  return isToml ? lineInToml(text, path) : lineInJson(text, path);
}

function lineInToml(text: string, path: readonly string[]): number | null {
  let table: readonly string[] = [];
  let isInside: string | null = null;
  let open = 0;
  let best: { readonly depth: number; readonly line: number } | null = null;
  for (const [index, line] of text.split("\n").entries()) {
    if (isInside !== null) {
      if (line.includes(isInside)) isInside = null;
      continue;
    }
    if (open === 0) {
      const header = /^\s*\[\[?([^\]]+)\]/.exec(line)?.[1];
      const key =
        header === undefined ? /^\s*((?:"[^"]*"|'[^']*'|[\w.-]|\s*\.\s*)+?)\s*=/.exec(line)?.[1] : undefined;
      if (header !== undefined) table = namesOf(header);
      const stated = key === undefined ? table : [...table, ...namesOf(key)];
      if (header !== undefined || key !== undefined) {
        const depth = isStart(stated, path) ? stated.length : 0;
        if (depth > (best?.depth ?? 0)) best = { depth, line: index + 1 };
      }
    }
    isInside = openString(line);
    if (isInside === null) open = Math.max(0, open + bracketsLeftOpen(line));
  }
  return best?.line ?? null;
}

function namesOf(dotted: string): string[] {
  return [...dotted.matchAll(/"([^"]*)"|'([^']*)'|([\w-]+)/g)].map(([, double, single, bare]) =>
    String(double ?? single ?? bare),
  );
}

const isStart = (start: readonly string[], path: readonly string[]) =>
  start.length <= path.length && start.every((name, index) => name === path[index]);

/** The quotes of a string that goes on beyond the line. */
function openString(line: string): string | null {
  for (const quotes of ['"""', "'''"]) if ((line.split(quotes).length - 1) % 2 === 1) return quotes;
  return null;
}

function bracketsLeftOpen(line: string): number {
  const bare = line.replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, "").replace(/#.*/, "");
  const isHeader = /^\s*\[/.test(bare) && !bare.includes("=") && /\]\s*$/.test(bare);
  return isHeader ? 0 : bare.split("[").length - bare.split("]").length;
}

/** Each name is looked for after the one that holds it. */
function lineInJson(text: string, path: readonly string[]): number | null {
  let at = -1;
  for (const name of path) {
    const next = text.indexOf(JSON.stringify(name), at + 1);
    if (next < 0) break;
    at = next;
  }
  return at < 0 ? null : text.slice(0, at).split("\n").length;
}
