/** The log interface of the crawler, which pino also implements: a fixed message, with the values in fields. */
export interface CrawlerLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const quietLog: CrawlerLog = { debug() {}, info() {}, warn() {}, error() {} };

/** Keeps the crawl running when the log cannot be written (full disk, closed reader), at the cost of the log lines. */
export function outliveLog(streams: readonly NodeJS.WritableStream[]): void {
  for (const stream of streams) stream.removeAllListeners("error").on("error", () => {});
}

export function lineLog(write: (line: string) => void, form: "json" | "plain", name: string): CrawlerLog {
  const line = (level: string) => (fields: object, message: string) =>
    write(form === "json" ? jsonLine(level, name, fields, message) : plainLine(level, fields, message));
  return { debug() {}, info: line("info"), warn: line("warn"), error: line("error") };
}

function jsonLine(level: string, name: string, fields: object, message: string): string {
  return JSON.stringify({
    level,
    time: new Date().toISOString(),
    name,
    ...plainErrors(fields),
    msg: message,
  });
}

function plainLine(level: string, fields: object, message: string): string {
  const values = Object.entries(plainErrors(fields)).map(([key, value]) => `${key}=${inWords(value)}`);
  const mark = level === "info" ? "" : `${level}: `;
  return [`${new Date().toISOString().slice(11, 19)} ${mark}${message}`, ...values].join(" ");
}

export function inWords(value: unknown): string {
  return typeof value === "string" && /^\S+$/.test(value) ? value : JSON.stringify(value);
}

function plainErrors(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? value.message : value]),
  );
}
