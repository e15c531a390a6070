// The sampler of a server, with its databases.

import type { CallFunction } from '#core/call_function.ts';
import type { IntakeLook, LedgerLook, LiveSample } from '#core/console/sample.ts';
import type { Clock, Log } from '#core/ports.ts';
import type { Fleet, FleetCell } from '../fleet/fleet.ts';
import { releaseName } from './release.ts';
import { Sampler, type TakeArguments } from './sampler.ts';

export interface SampledPorts {
  readonly fleet: Pick<Fleet<FleetCell>, 'isOne' | 'cells'>;
  /** All cells as one intake. */
  readonly callIntake: CallFunction;
  readonly callLedger: CallFunction;
  readonly sampleClock?: Clock | undefined;
  readonly log: Log;
}

export function openSampler(ports: SampledPorts, publish: (sample: LiveSample) => void): Sampler {
  const { fleet, callIntake, callLedger, sampleClock, log } = ports;
  const take =
    <Look>(call: CallFunction) =>
    async (args: TakeArguments): Promise<Look | null> => {
      const [row] = await call<{ take_sample: Look | null }>('take_sample', { ...args });
      return row?.take_sample ?? null;
    };
  return new Sampler(
    {
      takeIntake: take<IntakeLook>(callIntake),
      takeLedger: take<LedgerLook>(callLedger),
      ...(!fleet.isOne && { cells: fleet.cells.map(({ name }) => name) }),
      release: releaseName(process.env),
      ...(sampleClock && { clock: sampleClock }),
      log,
    },
    publish,
  );
}
