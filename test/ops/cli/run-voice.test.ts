/** A run's output at its start, and who is shown a sign-in link. */
import { expect, it, vi } from "vitest";
import { createRunVoice } from "#ops/cli/up/follow-run";

it("a link that signs in is for terminals: elsewhere the command is named", () => {
  const written: string[] = [];
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    written.push(String(text));
    return true;
  });
  try {
    const voice = createRunVoice({ json: false });
    expect(voice.isTerminal).toBe(process.stdout.isTTY === true);
    voice.webUrl("http://127.0.0.1:7411", "embedded Postgres", null);
    voice.webUrl("http://127.0.0.1:7411", "embedded Postgres", "http://127.0.0.1:7411/sign-in/ncl_1");
  } finally {
    write.mockRestore();
  }

  expect(written[0]).toContain("sign in:  nearcrawl sign-in prints a link");
  expect(written[1]).toContain("sign in:  http://127.0.0.1:7411/sign-in/ncl_1\n          (as operator, once");
});
