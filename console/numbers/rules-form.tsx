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
import { bodyOf, type Fields, fieldsOf, type LimitRow, type Rules } from './rules-fields.ts';

const OFFICE_HOURS = { start: '09:00', end: '18:00' };

export function RulesForm({ rules }: { rules: Rules }) {
  // Fields without a change follow the server and are not sent, so that saving keeps what others changed meanwhile.
  const [changes, setChanges] = useState<Partial<Fields>>({});
  const { cap, blocked, limits, hours } = { ...fieldsOf(rules), ...changes };
  const change = (part: Partial<Fields>) => setChanges((known) => ({ ...known, ...part }));
  const save = useMutation({
    mutationFn: async (sent: Partial<Fields>) => {
      // The server rejects a request without changes.
      if (Object.keys(sent).length === 0) return rules;
      return await dataOf(api.PATCH('/dialer/calling-rules', { body: bodyOf(sent) }));
    },
    onSuccess: (saved, sent) => {
      queryClient.setQueryData(callingRulesQuery.queryKey, saved);
      setChanges((known) => (known === sent ? {} : known));
      notifyDone(text.saved);
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(changes);
      }}
    >
      <Stack>
        <NumberInput
          label={text.spend}
          description={text.spendHint}
          value={cap}
          onChange={(typed) => change({ cap: typed })}
          min={0}
          max={1_000_000}
          maw={280}
        />
        <TagsInput
          label={text.blocked}
          description={text.blockedHint}
          value={blocked}
          onChange={(prefixes) => change({ blocked: prefixes })}
          splitChars={[',', ';', ' ']}
          acceptValueOnBlur
        />
        <LimitRows rows={limits} onChange={(rows) => change({ limits: rows })} />
        <Hours hours={hours} onChange={(next) => change({ hours: next })} />
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
