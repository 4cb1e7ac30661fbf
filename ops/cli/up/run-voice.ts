/** What a run says while it goes on: to a person on a terminal, or in plain lines, or nothing with --json. */
import { linkMinutes } from "#core/access-types";
import { ProgressLine } from "../output.ts";

export interface RunVoice {
  /** What starts: said at once, since what follows takes some seconds. */
  begin(what: string): void;
  /** Whether a person reads along: a link that signs in stands in no log and no pipe. */
  readonly isTerminal: boolean;
  /** The web page's address: said before all notes. */
  webUrl(url: string, database: string, signInUrl: string | null): void;
  note(words: string): void;
  progress(text: string): void;
  done(): void;
}

/** Speaks on standard error when `json`, so that standard output holds the result alone. */
export function createRunVoice(options: { readonly json: boolean }): RunVoice {
  const stream = options.json ? process.stderr : process.stdout;
  const line = new ProgressLine(stream);
  /** Until the address is said, which comes first; null after. */
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
