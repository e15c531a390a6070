/** A subcommand of `sluice`: what it does in a line, its help page, and the work, which returns the exit code. */
export type Command = {
  summary: string;
  usage: string;
  run(args: string[]): Promise<number>;
};
