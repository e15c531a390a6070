#!/usr/bin/env node
// The sources are TypeScript and run as they are: tsx strips the types, so there is no build step to forget.
import { register } from 'tsx/esm/api';

register();
await import('../src/cli.ts');
