/**
 * What was read of each file, for an operator who has to decide whether to trust it: one row a file and their sum,
 * then per file why records were left out, what its text was written in, and each broken record with its line.
 */
import type { FileReport } from "#rir-import/read/file-report";
import { type Column, formatTable } from "../output.ts";

const count = (value: number) => value.toLocaleString("en");
const left = (title: string): Column => ({ title });
const right = (title: string): Column => ({ title, align: "right" });
const malformedShown = 10;
const reasonsShown = 12;

const titles = ["file", "format", "registry", "date"];
const figures = ["read", "kept", "ignored", "malformed", "text MB", "seconds", "MB/s"];

export function filesText(files: readonly FileReport[]): string {
  const rows = files.map((file) => [
    file.file,
    file.format,
    file.registry ?? "",
    file.fileDate ?? "",
    ...figuresOf([file]),
  ]);
  const sum = files.length > 1 ? [[`${files.length} files`, "", "", "", ...figuresOf(files)]] : [];
  const table = formatTable([...titles.map(left), ...figures.map(right)], [...rows, ...sum]);
  return [table, ...files.flatMap(remarksOf)].join("\n");
}

/** A file that took no time to speak of has no speed. */
function figuresOf(files: readonly FileReport[]): readonly string[] {
  const sum = (figure: (file: FileReport) => number) =>
    files.reduce((total, file) => total + figure(file), 0);
  const seconds = sum((file) => file.seconds);
  const megabytes = sum((file) => file.textBytes) / 1e6;
  return [
    count(sum((file) => file.read)),
    count(sum((file) => file.kept)),
    count(sum((file) => ignoredOf(file))),
    count(sum((file) => file.malformed)),
    megabytes.toFixed(megabytes < 10 ? 1 : 0),
    seconds.toFixed(2),
    seconds >= 0.01 ? (megabytes / seconds).toFixed(0) : "",
  ];
}

const ignoredOf = ({ ignored }: FileReport) =>
  Object.values(ignored).reduce((total, number) => total + number, 0);

function remarksOf(file: FileReport): readonly string[] {
  const remarks = [
    ...ignoredText(file).map((text) => `ignored ${text}`),
    ...encodingText(file),
    ...file.warnings.map((warning) => `warning: ${warning}`),
  ];
  return [...remarks.map((remark) => `  ${file.file}: ${remark}`), ...malformedText(file)];
}

/** The commonest reason first. */
function ignoredText({ ignored }: FileReport): readonly string[] {
  const reasons = Object.entries(ignored).sort(([, a], [, b]) => b - a);
  if (reasons.length === 0) return [];
  const shown = reasons.slice(0, reasonsShown).map(([reason, number]) => `${count(number)} × ${reason}`);
  const rest = reasons.slice(reasonsShown);
  const others = rest.reduce((total, [, number]) => total + number, 0);
  return [
    [...shown, ...(rest.length === 0 ? [] : [`${count(others)} for ${rest.length} other reasons`])].join(
      ", ",
    ),
  ];
}

function encodingText({ encoding }: FileReport): readonly string[] {
  if (encoding === null) return [];
  const { utf8Values, latin1Values, firstLatin1Line } = encoding;
  const parts: string[] = [];
  if (utf8Values > 0) parts.push(`${count(utf8Values)} ${valuesWord(utf8Values)} in UTF-8`);
  if (latin1Values > 0) {
    const line = firstLatin1Line === null ? "" : `, the first in the record at line ${firstLatin1Line}`;
    parts.push(`${count(latin1Values)} ${valuesWord(latin1Values)} not in UTF-8 (read as Latin-1${line})`);
  }
  return [`encoding: ${parts.join(", ")}, all others plain ASCII`];
}

const valuesWord = (number: number) => (number === 1 ? "value" : "values");

/** As `file:line:`, which editors and terminals open. */
function malformedText(file: FileReport): readonly string[] {
  const samples = file.malformedSamples.slice(0, malformedShown);
  const more = file.malformed - samples.length;
  return [
    ...samples.map(({ line, reason, value }) => {
      const shown = value === "" ? "" : `: "${shortened(value, 60)}"`;
      return `  ${file.file}:${line}: ${reason}${shown}`;
    }),
    ...(more > 0 ? [`  ${file.file}: and ${count(more)} more malformed records`] : []),
  ];
}

function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
