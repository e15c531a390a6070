/**
 * Where the console answers with its page, as the server's door spells paths: at most one parameter each. The browser decides
 * what to show there. Everything below /webhooks/ belongs to the providers, below /admin/ and /v1/ to the API.
 */
export const CONSOLE_PATHS = [
  '/',
  '/history',
  '/pools',
  '/pools/:pool',
  '/claims',
  '/claims/:claim',
  '/orders',
  '/orders/:order',
  '/tickets',
  '/tickets/:ticket',
  '/payments',
  '/payments/:payment',
  '/credits',
  '/users',
  '/users/:user',
  '/search',
  '/refunds',
  '/issues',
  '/issues/:issue',
  '/dead-letters',
  '/dead-letters/:letter',
  '/webhooks',
  '/events',
  '/events/:event',
  '/calls',
  '/calls/:call',
  '/audit',
  '/health',
] as const;
