#!/usr/bin/env node
// The sources are TypeScript and run as they are: tsx strips the types, so there is no build step to forget. All of tsx,
// because a module of handlers in a folder without "type": "module" is CommonJS.
import 'tsx';

await import('../src/cli.ts');
