/** `NAME=value` lines, as in .sluice/env; quotes around a value are not part of it. Other lines are passed over. */
export function readEnvLines(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(/\r?\n/).flatMap((line) => {
      const [, name, value] = /^\s*([A-Za-z_][A-Za-z0-9_]*)=(.*?)\s*$/.exec(line) ?? [];
      if (name === undefined || value === undefined) return [];
      return [[name, value.replace(/^(["'])(.*)\1$/, '$2')]];
    }),
  );
}
