/** Defines what the partner's commands receive, and their exit codes. */

export const partnerExitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  refused: 4,
  interrupted: 130,
} as const;

export type PartnerExitCode = (typeof partnerExitCodes)[keyof typeof partnerExitCodes];

export interface PartnerContext {
  readonly home: string;
  readonly json: boolean;
  readonly print: (line: string) => void;
  readonly complain: (line: string) => void;
  /** Asks the person at the terminal. Null if there is no terminal. */
  readonly ask: ((question: string) => Promise<boolean>) | null;
  readonly env: PartnerEnvironment;
  readonly now: () => Date;
  readonly program: string;
  /** The arguments with which Node starts this program. Absent if it cannot be started again. */
  readonly self?: readonly string[];
}

export type PartnerEnvironment = Readonly<Record<string, string | undefined>>;
