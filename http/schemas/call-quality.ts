import { Type } from 'typebox';
import type { PublicLeg } from '../../actors/call-view.ts';
import type { QualitySample } from '../../storage/queries/call-quality.ts';
import { LegObjectSchema } from './call.ts';
import { nullable, TimeSchema } from './envelope.ts';

/** Sampling interval in `actors/call-quality.ts`. */
const INTERVAL_S = 5;

const SampleSchema = Type.Object({
  at: { ...TimeSchema, description: 'End of the sample. It begins where the one before ended.' },
  packets_received: Type.Integer({ description: 'RTP packets received from the leg during the sample.' }),
  packets_lost: Type.Integer({ description: 'RTP packets lost on the way from the leg during the sample.' }),
  loss_percent: Type.Number({ description: 'Share of the packets that were lost, 0 to 100.' }),
  jitter_ms: Type.Number({ description: 'Interarrival jitter (RFC 3550), in milliseconds.' }),
  round_trip_ms: nullable(
    Type.Number({ description: 'Round trip to the leg, in milliseconds. Null if the peer sends no RTCP.' }),
  ),
  mos: nullable(
    Type.Number({
      description: 'Estimated mean opinion score, 1 (bad) to 5 (excellent). Null if nothing was received.',
    }),
  ),
});

export const CallQualitySchema = Type.Object(
  {
    call_id: Type.String(),
    interval_s: Type.Integer({
      description: 'Seconds between two samples of a leg. The last sample of a call can be shorter.',
    }),
    legs: Type.Array(
      Type.Object({
        leg_id: Type.String({ description: '`agent`, `customer`, or the id of a leg that was added.' }),
        role: LegObjectSchema.properties.role,
        samples: Type.Array(SampleSchema, {
          description: 'Oldest first. There is no sample while a leg sends nothing, such as on hold.',
        }),
      }),
      { description: 'Legs with stored samples.' },
    ),
  },
  {
    examples: [
      {
        call_id: 'call_00000000-0000-4000-8000-000000000000',
        interval_s: INTERVAL_S,
        legs: [
          {
            leg_id: 'agent',
            role: 'agent',
            samples: [
              {
                at: '2026-01-31T09:30:10.000Z',
                packets_received: 248,
                packets_lost: 2,
                loss_percent: 0.8,
                jitter_ms: 1.25,
                round_trip_ms: 41.5,
                mos: 4.31,
              },
            ],
          },
        ],
      },
    ],
  },
);

interface SampledCall {
  callId: string;
  legs: readonly Pick<PublicLeg, 'leg_id' | 'role'>[];
  samples: readonly QualitySample[];
}

export function presentCallQuality({ callId, legs, samples }: SampledCall) {
  const roles = new Map(legs.map(({ leg_id, role }) => [leg_id, role]));
  return {
    call_id: callId,
    interval_s: INTERVAL_S,
    legs: [...Map.groupBy(samples, ({ leg }) => leg)].map(([legId, ofLeg]) => ({
      leg_id: legId,
      role: roles.get(legId) ?? (legId === 'agent' || legId === 'customer' ? legId : 'party'),
      samples: ofLeg.map(presentSample),
    })),
  };
}

function presentSample({ at, packetsReceived, packetsLost, jitterMs, roundTripMs, mos }: QualitySample) {
  const total = packetsReceived + packetsLost;
  return {
    at: at.toISOString(),
    packets_received: packetsReceived,
    packets_lost: packetsLost,
    loss_percent: total === 0 ? 0 : Math.round((10_000 * packetsLost) / total) / 100,
    jitter_ms: jitterMs,
    round_trip_ms: roundTripMs,
    mos,
  };
}
