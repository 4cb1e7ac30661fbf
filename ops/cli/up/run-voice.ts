/** The output of a run: for a person on a terminal, in plain lines, or none with --json. */
import { linkMinutes } from "#core/access-types";
import { ProgressLine } from "../output.ts";

export interface RunVoice {
  /** Printed at once, because the start takes some seconds. */
  begin(what: string): void;
  /** Whether a person reads it: sign-in links must not appear in logs and pipes. */
  readonly isTerminal: boolean;
  /** The web page's address, printed before all notes. */
  webUrl(url: string, database: string, signInUrl: string | null): void;
  note(words: string): void;
  progress(text: string): void;
  done(): void;
}

/** With `json` it uses standard error, so that standard output holds the result alone. */
export function createRunVoice(options: { readonly json: boolean }): RunVoice {
  const stream = options.json ? process.stderr : process.stdout;
  const line = new ProgressLine(stream);
  /** Notes held until the address is printed; null afterwards. */
  let held: string[] | null = [];
  const say = (words: string) => {
    line.done();
    stream.write(`${words}\n`);
  };
  return {
    begin(what) {
      say(`starting: the database, ${what}`);
    },
    isTerminal: stream.isTTY === true,
    webUrl(url, database, signInUrl) {
      const signIn =
        signInUrl === null
          ? "nearcrawl sign-in prints a link"
          : `${signInUrl}\n          (as operator, once, within ${linkMinutes.usual} minutes; another: nearcrawl sign-in)`;
      say(`web page: ${url}\nsign in:  ${signIn}\ndatabase: ${database}`);
      for (const words of held ?? []) say(words);
      held = null;
    },
    note(words) {
      if (held) held.push(words);
      else say(words);
    },
    progress(text) {
      line.show(text);
    },
    done() {
      line.done();
    },
  };
}
