import { Type } from 'typebox';
import { nanoToUsd } from '../../runtime/money.ts';
import { type CallStatistics, callStatistics } from '../../storage/queries/call-statistics.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { nullable, REFUSALS, success, successOf, TimeSchema } from '../schemas/envelope.ts';
import { periodStart, readTime } from '../schemas/time.ts';
import { requireTimeZone, unknownTimeZone } from '../schemas/time-zone.ts';
import { validationFailed } from '../validation.ts';

const DAY_MS = 86_400_000;
/** SQLSTATE. */
const INVALID_PARAMETER_VALUE = '22023';
const MAX_DAYS = { day: 366, hour: 31 } as const;
const DEFAULT_DAYS = { day: 30, hour: 1 } as const;
const EARLIEST = new Date(0);
const LATEST = new Date('9999-01-01T00:00:00Z');

export function callStatisticsRoute(app: HttpApp, { sql, now }: HttpContext): void {
  app.get(
    '/dialer/statistics',
    {
      config: { access: 'member' },
      schema: {
        tags: ['click-to-call'],
        operationId: 'getCallStatistics',
        summary: 'Get call statistics',
        description:
          'Counts the calls of the workspace that were created in a period, by hour or day and in total. Days begin at midnight of the time zone and have 23 or 25 hours when its clocks change. Tandem extension.',
        querystring: Type.Object({
          from: Type.Optional(
            Type.String({
              description:
                'Start of the period, inclusive. ISO 8601. Default: 30 days before `to`, or one day with `interval=hour`.',
            }),
          ),
          to: Type.Optional(Type.String({ description: 'End of the period, exclusive. ISO 8601. Default: now.' })),
          interval: Type.Enum(['day', 'hour'], {
            default: 'day',
            description: 'Length of the intervals. A period has at most 366 days, or 31 days with `hour`.',
          }),
          time_zone: Type.String({
            default: 'UTC',
            maxLength: 64,
            description: 'IANA name of the time zone whose days and hours are counted.',
            examples: ['Asia/Kolkata'],
          }),
        }),
        response: { 200: successOf(StatisticsSchema, 'The statistics.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { interval, time_zone } = request.query;
      const timeZone = requireTimeZone('time_zone', time_zone);
      const to = readTime('to', request.query.to) ?? now();
      const from = readTime('from', request.query.from) ?? periodStart(to, DEFAULT_DAYS[interval] * DAY_MS);
      if (from >= to) throw validationFailed([{ path: 'from', message: 'must be before to' }]);
      // The first and the last interval may begin and end in another year.
      if (from < EARLIEST) throw validationFailed([{ path: 'from', message: 'must be in 1970 or later' }]);
      if (to > LATEST) throw validationFailed([{ path: 'to', message: 'must be before the year 9999' }]);
      if (to.getTime() - from.getTime() > MAX_DAYS[interval] * DAY_MS) {
        const message = `must be at most ${MAX_DAYS[interval]} days before to with interval=${interval}`;
        throw validationFailed([{ path: 'from', message }]);
      }
      const { workspaceId } = principalOf(request);
      const counting = callStatistics(sql, { workspaceId, from, to, interval, timeZone });
      const { total, intervals } = await counting.catch((error) => {
        // The database may have an older list of time zones.
        throw error?.code === INVALID_PARAMETER_VALUE ? unknownTimeZone('time_zone') : error;
      });
      return success({
        from: from.toISOString(),
        to: to.toISOString(),
        interval,
        time_zone: timeZone,
        total: presentStatistics(total),
        intervals: intervals.map(({ start, end, ...counted }) => {
          return { start: start.toISOString(), end: end.toISOString(), ...presentStatistics(counted) };
        }),
      });
    },
  );
}

function presentStatistics(counted: CallStatistics) {
  const { live, completed, notAnswered, failed, temporarilyFailed, rejected } = counted;
  const seizures = completed + notAnswered + failed + temporarilyFailed;
  const talkSeconds = Number(counted.talkSeconds);
  return {
    calls: seizures + live + rejected,
    outcomes: { completed, not_answered: notAnswered, failed, temporarily_failed: temporarilyFailed, rejected, live },
    answer_seizure_ratio: seizures === 0 ? null : rounded(completed / seizures, 4),
    average_talk_seconds: completed === 0 ? null : rounded(talkSeconds / completed, 2),
    talk_minutes: rounded(talkSeconds / 60, 2),
    cost_usd: nanoToUsd(counted.costNano),
    mos: {
      mean: counted.meanMos === null ? null : rounded(counted.meanMos, 2),
      worst: counted.worstMos === null ? null : rounded(counted.worstMos, 2),
    },
  };
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

const COUNTED_PROPERTIES = {
  calls: Type.Integer({ description: 'Calls that were created.' }),
  outcomes: Type.Object(
    {
      completed: Type.Integer({ description: 'Both parties talked.' }),
      not_answered: Type.Integer({ description: 'No answer, busy, declined or cancelled.' }),
      failed: Type.Integer({ description: 'Failed for good, such as for a number that does not exist.' }),
      temporarily_failed: Type.Integer({ description: 'Failed for a reason that may pass.' }),
      rejected: Type.Integer({ description: 'Not dialed.' }),
      live: Type.Integer({ description: 'Not final yet.' }),
    },
    { description: 'Calls by outcome.' },
  ),
  answer_seizure_ratio: nullable(
    Type.Number({
      description: 'Completed calls per call that was dialed and is final, 0 to 1. Null without such calls.',
    }),
  ),
  average_talk_seconds: nullable(
    Type.Number({ description: 'Talk time per completed call. Null without completed calls.' }),
  ),
  talk_minutes: Type.Number({ description: 'Talk time of all calls, in minutes.' }),
  cost_usd: Type.Number({ description: 'Cost of the calls: talk, further legs and speech.' }),
  mos: Type.Object(
    {
      mean: nullable(Type.Number({ description: 'Mean of all measured agents and customers.' })),
      worst: nullable(Type.Number({ description: 'Worst of them.' })),
    },
    { description: 'Estimated mean opinion scores, 1 to 5. Null if nothing was measured.' },
  ),
};

const COUNTED_EXAMPLE = {
  calls: 42,
  outcomes: { completed: 30, not_answered: 9, failed: 1, temporarily_failed: 0, rejected: 1, live: 1 },
  answer_seizure_ratio: 0.75,
  average_talk_seconds: 94.5,
  talk_minutes: 47.25,
  cost_usd: 0.9,
  mos: { mean: 4.21, worst: 3.1 },
};

const StatisticsSchema = Type.Object(
  {
    from: TimeSchema,
    to: TimeSchema,
    interval: Type.Enum(['day', 'hour']),
    time_zone: Type.String(),
    total: Type.Object(COUNTED_PROPERTIES, { description: 'Statistics of the whole period.' }),
    intervals: Type.Array(
      Type.Object({
        start: { ...TimeSchema, description: 'Start of the day or hour. Calls before `from` are not counted.' },
        end: { ...TimeSchema, description: 'End of the day or hour, exclusive.' },
        ...COUNTED_PROPERTIES,
      }),
      { description: 'In order; those without calls are included.' },
    ),
  },
  {
    examples: [
      {
        from: '2026-01-30T18:30:00.000Z',
        to: '2026-01-31T18:30:00.000Z',
        interval: 'day',
        time_zone: 'Asia/Kolkata',
        total: COUNTED_EXAMPLE,
        intervals: [{ start: '2026-01-30T18:30:00.000Z', end: '2026-01-31T18:30:00.000Z', ...COUNTED_EXAMPLE }],
      },
    ],
  },
);
