/** The confirmation on a terminal before a destructive action. */
import { PassThrough } from "node:stream";
import { afterEach, expect, it } from "vitest";
import { confirmedByTyping, type Deed } from "#ops/cli/confirm-by-typing";

const deed: Deed = { follows: "athens has 3 subnets.", typed: "athens", asked: "its name" };

afterEach(() => {
  process.exitCode = 0;
});

async function answered(answer: string, options: { yes?: boolean; json?: boolean; isTTY?: boolean } = {}) {
  const { isTTY = true, ...given } = options;
  const input = Object.assign(new PassThrough(), { isTTY });
  const output = new PassThrough();
  input.end(`${answer}\n`);
  let asked = 0;
  const confirmed = await confirmedByTyping(
    given,
    async () => {
      asked += 1;
      return deed;
    },
    { input, output },
  );
  return { confirmed, asked, said: String(output.read() ?? ""), code: process.exitCode };
}

it("states the consequence, and continues only with the typed word", async () => {
  const right = await answered(" athens ");
  const wrong = await answered("yes");
  const empty = await answered("");

  expect(right).toMatchObject({ confirmed: true, asked: 1 });
  expect(right.said).toContain("athens has 3 subnets.\nType its name to confirm: ");
  expect(wrong).toMatchObject({ confirmed: false, code: 2 });
  expect(wrong.said).toContain("not confirmed, and nothing was done");
  expect(empty).toMatchObject({ confirmed: false, code: 2 });
});

it.each([
  ["with --yes", { yes: true }],
  ["for a program", { json: true }],
  ["without a terminal", { isTTY: false }],
])("asks nobody %s", async (_, options) => {
  expect(await answered("", options)).toMatchObject({ confirmed: true, asked: 0, said: "" });
});
