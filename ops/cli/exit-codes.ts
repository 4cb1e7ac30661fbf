/**
 * How every command ends. 0 done; 1 failed (database, network, a bug); 2 wrong usage, settings or input;
 * 3 asked for something that is not there (`who` without an answer); 4 something needs attention (`alerts`);
 * 130 interrupted. Where nobody reads the output any more (`… | head`) they are the same
 * (migrating-crawler/cli/closed-output.ts).
 */
export const exitCodes = { done: 0, failed: 1, usage: 2, notFound: 3, alerts: 4, interrupted: 130 } as const;

/** For the help of commands that ask a room. */
export const exitsOfRoom =
  "Exit codes: 0 done, 1 failed, 2 wrong usage or refused, 3 there is nothing of it. No coordinator has to run.";
