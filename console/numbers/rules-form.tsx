import {
  ActionIcon,
  Alert,
  Button,
  Fieldset,
  Group,
  NumberInput,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  TagsInput,
  TextInput,
} from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { api, dataOf } from '../app/api.ts';
import { queryClient } from '../app/query-client.ts';
import { notifyDone } from '../parts/notify.ts';
import { viewerTimeZone } from '../parts/time-zone.ts';
import { rulesText as text } from '../text/numbers.ts';
import { callingRulesQuery } from './queries.ts';

export type Rules = Awaited<ReturnType<typeof fetchRules>>;

function fetchRules() {
  return dataOf(api.GET('/dialer/calling-rules'));
}

interface LimitRow {
  key: number;
  prefix: string;
  perMinute: number | string;
}

const OFFICE_HOURS = { start: '09:00', end: '18:00' };

export function RulesForm({ rules }: { rules: Rules }) {
  const [cap, setCap] = useState<number | string>(rules.daily_spend_cap_usd ?? '');
  const [blocked, setBlocked] = useState(rules.blocked_prefixes);
  const [limits, setLimits] = useState<LimitRow[]>(() =>
    rules.destination_limits.map(({ prefix, calls_per_minute: perMinute }, key) => ({ key, prefix, perMinute })),
  );
  const [hours, setHours] = useState(rules.calling_hours);
  const save = useMutation({
    mutationFn: () =>
      dataOf(
        api.PATCH('/dialer/calling-rules', {
          body: {
            daily_spend_cap_usd: cap === '' ? null : Number(cap),
            blocked_prefixes: blocked,
            destination_limits: limits.map(({ prefix, perMinute }) => ({
              prefix: prefix.trim(),
              calls_per_minute: Number(perMinute),
            })),
            calling_hours: hours,
          },
        }),
      ),
    onSuccess: (saved) => {
      queryClient.setQueryData(callingRulesQuery.queryKey, saved);
      notifyDone(text.saved);
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <Stack>
        <NumberInput
          label={text.spend}
          description={text.spendHint}
          value={cap}
          onChange={setCap}
          min={0}
          max={1_000_000}
          maw={280}
        />
        <TagsInput
          label={text.blocked}
          description={text.blockedHint}
          value={blocked}
          onChange={setBlocked}
          splitChars={[',', ';', ' ']}
          acceptValueOnBlur
        />
        <LimitRows rows={limits} onChange={setLimits} />
        <Hours hours={hours} onChange={setHours} />
        {save.error && <Alert color="red">{save.error.message}</Alert>}
        <Group>
          <Button type="submit" loading={save.isPending}>
            {text.save}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function LimitRows({ rows, onChange }: { rows: LimitRow[]; onChange: (rows: LimitRow[]) => void }) {
  const change = (key: number, part: Partial<LimitRow>) =>
    onChange(rows.map((row) => (row.key === key ? { ...row, ...part } : row)));
  const add = () =>
    onChange([...rows, { key: Math.max(-1, ...rows.map(({ key }) => key)) + 1, prefix: '', perMinute: 60 }]);
  return (
    <Fieldset legend={text.limits}>
      <Stack gap="xs">
        {rows.map(({ key, prefix, perMinute }) => (
          <Group key={key} gap="xs" wrap="nowrap" align="end">
            <TextInput
              label={text.prefix}
              value={prefix}
              onChange={(event) => change(key, { prefix: event.currentTarget.value })}
              placeholder="+91"
              required
              flex={1}
            />
            <NumberInput
              label={text.perMinute}
              value={perMinute}
              onChange={(value) => change(key, { perMinute: value })}
              min={1}
              max={10_000}
              allowDecimal={false}
              required
              flex={1}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              size={36}
              aria-label={text.removeLimit(prefix)}
              onClick={() => onChange(rows.filter((row) => row.key !== key))}
            >
              <Trash2 size={16} />
            </ActionIcon>
          </Group>
        ))}
        <Group>
          <Button variant="default" size="xs" leftSection={<Plus size={14} aria-hidden />} onClick={add}>
            {text.addLimit}
          </Button>
        </Group>
      </Stack>
    </Fieldset>
  );
}

function Hours({
  hours,
  onChange,
}: {
  hours: Rules['calling_hours'];
  onChange: (hours: Rules['calling_hours']) => void;
}) {
  const toggle = (isOn: boolean) => onChange(isOn ? { time_zone: viewerTimeZone(), ...OFFICE_HOURS } : null);
  return (
    <Fieldset legend={text.hours}>
      <Stack gap="sm">
        <Switch label={text.hours} checked={hours !== null} onChange={(event) => toggle(event.currentTarget.checked)} />
        {hours !== null && (
          <SimpleGrid cols={{ base: 1, xs: 3 }}>
            <Select
              label={text.zone}
              data={[...new Set([hours.time_zone, 'UTC', ...Intl.supportedValuesOf('timeZone')])]}
              value={hours.time_zone}
              onChange={(zone) => zone && onChange({ ...hours, time_zone: zone })}
              searchable
              limit={100}
            />
            <TextInput
              type="time"
              label={text.start}
              value={hours.start}
              onChange={(event) => onChange({ ...hours, start: event.currentTarget.value })}
              required
            />
            <TextInput
              type="time"
              label={text.end}
              value={hours.end}
              onChange={(event) => onChange({ ...hours, end: event.currentTarget.value })}
              required
            />
          </SimpleGrid>
        )}
      </Stack>
    </Fieldset>
  );
}
