/** Links that a session has seen are sent by number; both ends remember the same, within bounds. */
import { expect, test } from "vitest";
import { seededRandom } from "#core/random";
import { LinkHistory } from "#protocol/packed/links";
import { NumberReader, NumberWriter } from "#protocol/packed/numbers";

const origin = "https://a.example";

function send(sender: LinkHistory, lines: readonly string[], from = origin) {
  const numbers = new NumberWriter();
  const fresh = sender.shorten(from, lines, numbers);
  return { fresh, numbers: numbers.finish(), count: lines.length, from };
}

function receive(receiver: LinkHistory, { fresh, numbers, count, from }: ReturnType<typeof send>): string[] {
  let taken = 0;
  return receiver.restore(from, count, new NumberReader(numbers), () => fresh[taken++]!);
}

test("a page's navigation is sent once, and later takes three numbers", () => {
  const [sender, receiver] = [new LinkHistory(), new LinkHistory()];
  const navigation = Array.from({ length: 80 }, (_, at) => `/n${at}\tgo ${at}`);

  const pages = [["/x", ...navigation, "/y"], [...navigation, "/z"], navigation].map((lines) => {
    const sent = send(sender, lines);
    return { lines, sent, received: receive(receiver, sent) };
  });

  expect(pages.map(({ sent }) => sent.fresh.length)).toEqual([82, 1, 0]);
  expect(pages[2]!.sent.numbers.length).toBe(3);
  expect(pages.map(({ received }) => received)).toEqual(pages.map(({ lines }) => lines));
});

test("both ends agree through forgetting, repeats and many origins, and keep a bounded memory", () => {
  const [sender, receiver] = [new LinkHistory(), new LinkHistory()];
  const random = seededRandom(8);
  let most = 0;
  for (let round = 0; round < 600; round++) {
    const from = `https://h${Math.floor(random() ** 2 * 40)}.example`;
    const lines = Array.from({ length: Math.floor(random() * 60) }, () => {
      return `/${"p".repeat(Math.floor(random() * 500))}${Math.floor(random() * 30)}`;
    });

    const sent = send(sender, lines, from);

    expect(receive(receiver, sent)).toEqual(lines);
    expect(receiver.characters).toBe(sender.characters);
    most = Math.max(most, sender.characters);
  }
  expect(most).toBeGreaterThan(200_000);
  expect(most).toBeLessThanOrEqual(300_000);
});
