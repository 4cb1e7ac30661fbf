/** What a run says while it goes on: to a person on a terminal, or in plain lines, or nothing with --json. */
import { ProgressLine } from "../output.ts";

export interface RunVoice {
  /** The web page's address: said first. */
  webUrl(url: string, database: string): void;
  note(words: string): void;
  progress(text: string): void;
  done(): void;
}

/** Speaks on standard error when `json`, so that standard output holds the result alone. */
export function createRunVoice(options: { readonly json: boolean }): RunVoice {
  const stream = options.json ? process.stderr : process.stdout;
  const line = new ProgressLine(stream);
  return {
    webUrl(url, database) {
      line.done();
      stream.write(`web page: ${url}\ndatabase: ${database}\n`);
    },
    note(words) {
      line.done();
      stream.write(`${words}\n`);
    },
    progress(text) {
      line.show(text);
    },
    done() {
      line.done();
    },
  };
}
