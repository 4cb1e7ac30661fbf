/**
 * Opens the embedded database of the home in its arguments, reports that in one line of JSON, and keeps it open until standard
 * input ends. For tests that kill it or run it as another user.
 */
import { openDatabase } from "#db/connect";

const home = process.argv[2] ?? "";
try {
  const database = await openDatabase({ databaseUrl: null, home, schema: "public" });
  process.stdout.write(`${JSON.stringify({ url: database.url })}\n`);
  process.stdin.resume().once("end", () => void database.close());
} catch (error) {
  process.stdout.write(`${JSON.stringify({ error: String(error) })}\n`);
}
