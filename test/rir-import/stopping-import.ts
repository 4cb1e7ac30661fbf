/**
 * A process that applies an import and stands still in the middle of writing, for a test that kills it.
 * Arguments: database URL, schema, file.
 */
import { writeSync } from "node:fs";
import { openDatabase } from "#db/connect";
import { applyImport } from "#rir-import/main";

const [databaseUrl = "", schema = "", file = ""] = process.argv.slice(2);
const database = await openDatabase({ databaseUrl, schema, home: "/nonexistent" });
await applyImport(database, [file], {
  onProgress: ({ phase, done }) => {
    if (phase !== "write" || done === 0) return;
    writeSync(1, "writing\n");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  },
});
