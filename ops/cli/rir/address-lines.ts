/**
 * Addresses from a stream, one a line, answered in JSON lines as they come. Memory stays constant whatever the
 * stream's length: a line is bounded, and the next piece is read when the answers to this one are taken.
 *
 *   in   193.0.6.139
 *        nonsense
 *   out  {"line":1,"asked":"193.0.6.139","chain":[…],"crossing":[]}
 *        {"line":2,"error":"\"nonsense\" is neither an address nor a range"}
 */
import { UsageError } from "#core/errors";
import { decodeText, LineCutter } from "#rir-import/formats/lines";
import type { LookUp } from "#rir-import/lookup";

/** Two IPv6 addresses with spaces around a dash are under 100 characters. */
const longestAsked = 200;
/** Answers are handed on when so much has gathered, and at the end of each piece of the stream. */
const gatheredChars = 65_536;

export interface AddressLines {
  readonly input: AsyncIterable<Buffer>;
  lookUp(text: string): LookUp | Promise<LookUp>;
  /** Takes whole lines; false when nobody takes them any more. */
  write(text: string): Promise<boolean>;
  /** A line that is no address or range, and why. */
  onBadLine(line: number, reason: string): void;
}

export interface AnsweredLines {
  readonly found: number;
  readonly notFound: number;
  readonly bad: number;
}

export async function answerAddressLines(lines: AddressLines): Promise<AnsweredLines> {
  const counts = { found: 0, notFound: 0, bad: 0 };
  const asked: AskedLine[] = [];
  const cutter = new LineCutter({
    line: (bytes, start, end, line) => asked.push({ line, text: decodeText(bytes, start, end) }),
    longLine: (_beginning, line) => asked.push({ line, text: null }),
  });
  for await (const chunk of lines.input) {
    cutter.push(chunk);
    if (!(await answerAll(asked.splice(0), lines, counts))) return counts;
  }
  cutter.end();
  await answerAll(asked.splice(0), lines, counts);
  return counts;
}

interface AskedLine {
  readonly line: number;
  /** Null for a line that is not worth keeping. */
  readonly text: string | null;
}

type Counts = { -readonly [name in keyof AnsweredLines]: AnsweredLines[name] };

/** False when the answers are not wanted any more. Empty lines are passed over. */
async function answerAll(asked: readonly AskedLine[], lines: AddressLines, counts: Counts): Promise<boolean> {
  let gathered = "";
  for (const one of asked) {
    if (one.text === "") continue;
    gathered += `${JSON.stringify(await answer(one, lines, counts))}\n`;
    if (gathered.length < gatheredChars) continue;
    if (!(await lines.write(gathered))) return false;
    gathered = "";
  }
  return gathered === "" || (await lines.write(gathered));
}

async function answer({ line, text }: AskedLine, lines: AddressLines, counts: Counts): Promise<object> {
  try {
    if (text === null || text.length > longestAsked)
      throw new UsageError(`a line of over ${longestAsked} characters`);
    const lookUp = await lines.lookUp(text);
    if (lookUp.chain.length === 0) counts.notFound += 1;
    else counts.found += 1;
    return { line, ...lookUp };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    counts.bad += 1;
    lines.onBadLine(line, error.message);
    return { line, error: error.message };
  }
}
