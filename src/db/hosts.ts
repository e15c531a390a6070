// An address with several hosts, as libpq writes it: postgres://user:password@a:5432,b:5432/name.

const ADDRESS = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/i;

/** One address for each host, in the given order; the address itself where it names one host. */
export function hostsOf(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = ADDRESS.exec(url) ?? [];
  const names = hosts.split(',').filter((host) => host !== '');
  return names.length > 1 ? [...new Set(names)].map((host) => `${before}${host}${after}`) : [url];
}

/** Host and port for logs: an address holds a password. */
export function hostOf(address: string): string {
  return ADDRESS.exec(address)?.[2] ?? '';
}
