/**
 * A process of its own that backs a home up, or restores it, and kills itself in the middle: `backup HOME`, or
 * `restore HOME BACKUP STEP`. What it says, it says as one JSON line.
 */
import { backupDatabase } from "#db/backup-database";
import { restoreDatabase } from "#db/restore-database";

const [what, home = "", backup = "", lastStep] = process.argv.slice(2);
const die = () => process.kill(process.pid, "SIGKILL");
try {
  if (what === "backup")
    await backupDatabase(home, { onProgress: ({ bytes, totalBytes }) => bytes > totalBytes / 2 && die() });
  else await restoreDatabase(home, backup, { onStep: (step) => step === lastStep && die() });
  process.stdout.write(`${JSON.stringify({ done: true })}\n`);
} catch (error) {
  process.stdout.write(`${JSON.stringify({ error: String(error) })}\n`);
}
