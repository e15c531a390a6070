// Disks that can lose power. Each is an ext4 file system on an image file. A copy of that file is what the disk held at that
// moment: what a program wrote and never synced is not in it. XFS holds the images, because it copies a file at once, while
// nothing else can write to it.

import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ensureDebianPackages } from '../test/pgtap/debian_packages.ts';
import { cleanUpOnExit } from '../test/support/databases.ts';

const PACKAGES = ['xfsprogs', 'e2fsprogs', 'mount'];
/** Files with holes: they use what is written to them. */
const IMAGE_SIZE = '6G';
const HOLDER_SIZE = '24G';
/** Killed processes keep files open for a moment. */
const UNMOUNT_MS = 20_000;
const POLL_MS = 20;

/** Why this machine cannot have such disks; undefined where it can. */
export async function whyNoDisks(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'only root can mount a disk';
  return ensureDebianPackages(PACKAGES);
}

export class Disks {
  readonly #dir: string;
  readonly #disks: Disk[] = [];
  readonly #forget: () => void;

  private constructor(dir: string) {
    this.#dir = dir;
    this.#forget = cleanUpOnExit(() => this.#removeNow());
  }

  /** In a folder of their own inside `dir`. */
  static async open(dir: string): Promise<Disks> {
    const reason = await whyNoDisks();
    if (reason !== undefined) throw new Error(`power cuts need disks of their own: ${reason}`);
    const disks = new Disks(dir);
    mkdirSync(disks.#images);
    run('truncate', '-s', HOLDER_SIZE, disks.#holder);
    run('mkfs.xfs', '-q', disks.#holder);
    run('mount', '-o', 'loop', disks.#holder, disks.#images);
    return disks;
  }

  get #holder(): string {
    return join(this.#dir, 'images.xfs');
  }
  get #images(): string {
    return join(this.#dir, 'images');
  }

  add(name: string): Disk {
    const disk = new Disk(join(this.#images, name), join(this.#dir, name));
    this.#disks.push(disk);
    disk.format();
    return disk;
  }

  /** What was written so far is on the disks. */
  sync(): void {
    for (const { dir } of this.#disks) run('sync', '--file-system', dir);
  }

  async close(): Promise<void> {
    for (const { dir } of this.#disks) await unmount(dir);
    await unmount(this.#images);
    this.#forget();
    this.#removeNow();
  }

  /** For the way out of this process: a program that still has files open keeps them until it ends. */
  #removeNow(): void {
    for (const dir of [...this.#disks.map(({ dir }) => dir), this.#images])
      spawnSync('umount', ['--lazy', '--quiet', dir]);
    rmSync(this.#holder, { force: true });
  }
}

export class Disk {
  /** Where its files are. */
  readonly dir: string;
  readonly #image: string;
  #turn = 1;

  constructor(image: string, dir: string) {
    this.#image = image;
    this.dir = dir;
  }

  #path(turn: number): string {
    return `${this.#image}.${turn}`;
  }

  format(): void {
    mkdirSync(this.dir);
    run('truncate', '-s', IMAGE_SIZE, this.#path(1));
    run('mkfs.ext4', '-q', this.#path(1));
    run('mount', '-o', 'loop', this.#path(1), this.dir);
    // As a temporary folder: the server's user makes its own in it.
    run('chmod', '1777', this.dir);
  }

  /** Now: what is on the disk at this moment is all that is left after `comeBack`. */
  losePower(): void {
    run('cp', '--reflink=always', this.#path(this.#turn), this.#path(this.#turn + 1));
  }

  /** In the place of the disk that lost power, once no process uses it any more. */
  async comeBack(): Promise<void> {
    await unmount(this.dir);
    rmSync(this.#path(this.#turn));
    this.#turn += 1;
    run('mount', '-o', 'loop', this.#path(this.#turn), this.dir);
  }
}

async function unmount(dir: string): Promise<void> {
  const deadline = Date.now() + UNMOUNT_MS;
  for (;;) {
    const umount = spawnSync('umount', [dir], { encoding: 'utf8' });
    if (umount.status === 0) return;
    if (Date.now() > deadline) throw failure('umount', umount);
    await pause(POLL_MS);
  }
}

function run(program: string, ...args: string[]): void {
  const result = spawnSync(program, args, { encoding: 'utf8' });
  if (result.status !== 0) throw failure(`${program} ${args.join(' ')}`, result);
}

function failure(what: string, { error, stderr }: SpawnSyncReturns<string>): Error {
  return new Error(`${what} failed: ${error?.message ?? stderr.trim()}`);
}
