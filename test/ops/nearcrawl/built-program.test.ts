/** What a build leaves behind can be run as a command, also where npm did not install it since. */
import { accessSync, constants } from "node:fs";
import { expect, it } from "vitest";
import { builtProgram } from "../../support/built-command.ts";

it("the built program may be run", async () => {
  const program = await builtProgram("ops/nearcrawl/main");

  expect(() => accessSync(program, constants.X_OK)).not.toThrow();
});
