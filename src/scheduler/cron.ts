// The rows of cron.job, run when they are due. SQL decides what is due and refuses a second run for the same moment, so any
// number of schedulers may tick.

import type { Clock, Log } from '#core/ports.ts';
import type { Database } from '../db/database.ts';

interface DueJob {
  readonly jobid: number;
  readonly due_at: string;
}

export class Cron {
  readonly #db: Database;
  readonly #log: Log;
  readonly #now: Clock;
  readonly #running = new Map<number, Promise<void>>();
  #lookedAtMs: number | undefined;

  constructor(db: Database, log: Log, now: Clock) {
    this.#db = db;
    this.#log = log;
    this.#now = now;
  }

  /** Starts the jobs that are due and does not wait for them: a slow job delays no other. */
  async tick(): Promise<void> {
    const nowMs = this.#now();
    const jobs = await this.#db.call<DueJob>('cron.due_jobs', {
      p_at: new Date(nowMs).toISOString(),
      p_since: this.#lookedAtMs === undefined ? null : new Date(this.#lookedAtMs).toISOString(),
    });
    this.#lookedAtMs = nowMs;
    for (const job of jobs) {
      if (this.#running.has(job.jobid)) continue;
      this.#running.set(
        job.jobid,
        this.#run(job).finally(() => this.#running.delete(job.jobid)),
      );
    }
  }

  /** Resolves when nothing runs any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  async #run({ jobid, due_at }: DueJob): Promise<void> {
    try {
      const [row] = await this.#db.call<{ run_job: string | null }>('cron.run_job', {
        p_jobid: jobid,
        p_due_at: due_at,
      });
      const status = row?.run_job ?? 'ran elsewhere';
      if (status === 'failed') this.#log.warn('cron job failed; see cron.job_run_details', { jobid, due_at });
      else this.#log.debug('cron job', { jobid, due_at, status });
    } catch (error) {
      // The connection broke: whether it ran is the database's to know, and its next moment comes.
      this.#log.warn('cron job was cut off', { jobid, due_at, cause: error });
    }
  }
}
