/**
 * Applies an import and halts at a given moment, for a test that kills it. Arguments: database URL, schema, file,
 * phase, and the minimum progress of the phase.
 */
import { writeSync } from "node:fs";
import { openDatabase } from "#db/connect";
import { applyImport } from "#rir-import/apply";

const [databaseUrl = "", schema = "", file = "", wantedPhase = "", least = "0"] = process.argv.slice(2);
const database = await openDatabase({ databaseUrl, schema, home: "/nonexistent" });
await applyImport(database, [file], {
  onProgress: ({ phase, done }) => {
    if (phase !== wantedPhase || done < Number(least)) return;
    writeSync(1, "stands still\n");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  },
});
