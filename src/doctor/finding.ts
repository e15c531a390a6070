/** What one check found. `todo` is what a person does about it. */
export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'warn' | 'fail' | 'skip';
  readonly found: string;
  readonly todo?: string;
}

export function ok(check: string, found: string): Finding {
  return { check, status: 'ok', found };
}

export function warn(check: string, found: string, todo: string): Finding {
  return { check, status: 'warn', found, todo };
}

export function fail(check: string, found: string, todo: string): Finding {
  return { check, status: 'fail', found, todo };
}

/** Could not be looked at, because something before it is wrong or not used here. */
export function skip(check: string, found: string): Finding {
  return { check, status: 'skip', found };
}
