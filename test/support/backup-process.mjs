/**
 * Backs up or restores a home and kills itself in the middle: `backup HOME`, or `restore HOME BACKUP STEP`. Reports in one
 * line of JSON.
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
