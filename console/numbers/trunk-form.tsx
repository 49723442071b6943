import {
  Accordion,
  Fieldset,
  MultiSelect,
  NativeSelect,
  NumberInput,
  PasswordInput,
  SimpleGrid,
  Stack,
  Switch,
  TagsInput,
  TextInput,
} from '@mantine/core';
import { trunkFormText as text } from '../text/trunks.ts';
import type { Trunk } from './queries.ts';

const SIP_URI =
  '\\s*[sS][iI][pP][sS]?:(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9]([A-Za-z0-9.\\-]*[A-Za-z0-9])?)(:[0-9]{1,5})?\\s*';
const CODECS = ['PCMU', 'PCMA', 'G722', 'OPUS', 'CN'];

/** Fields by the names that `trunk-fields.ts` reads. The browser keeps the values. */
export function TrunkForm({ trunk }: { trunk: Trunk | undefined }) {
  return (
    <Stack gap="md">
      <TextInput
        name="name"
        label={text.name}
        defaultValue={trunk?.name}
        maxLength={100}
        required
        autoComplete="off"
        data-autofocus
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }} className="aligned-fields">
        <TextInput
          name="sip_uri"
          label={text.address}
          description={text.addressHint}
          defaultValue={trunk?.sip_uri}
          pattern={SIP_URI}
          title={text.addressFormat}
          required
          autoComplete="off"
          spellCheck={false}
        />
        <NativeSelect
          name="transport"
          label={text.transport}
          defaultValue={trunk?.transport ?? 'udp'}
          data={options(text.transports)}
        />
      </SimpleGrid>
      <AccountFields trunk={trunk} />
      <NumberFields trunk={trunk} />
      <SoundFields trunk={trunk} />
      <Accordion variant="contained">
        <Accordion.Item value="more">
          <Accordion.Control>{text.advanced}</Accordion.Control>
          <Accordion.Panel>
            <MoreFields trunk={trunk} />
          </Accordion.Panel>
        </Accordion.Item>
      </Accordion>
    </Stack>
  );
}

interface FieldsProps {
  trunk: Trunk | undefined;
}

function AccountFields({ trunk }: FieldsProps) {
  return (
    <Fieldset legend={text.account}>
      <Stack gap="sm">
        <SimpleGrid cols={{ base: 1, sm: 2 }} className="aligned-fields">
          <TextInput
            name="username"
            label={text.username}
            description={text.usernameHint}
            defaultValue={trunk?.username ?? ''}
            maxLength={128}
            autoComplete="off"
            spellCheck={false}
          />
          <PasswordInput
            name="password"
            label={text.password}
            description={trunk?.username ? text.passwordKept : text.passwordHint}
            maxLength={256}
            autoComplete="new-password"
          />
        </SimpleGrid>
        <Switch
          name="register"
          label={text.register}
          description={text.registerHint}
          defaultChecked={trunk?.register ?? false}
        />
      </Stack>
    </Fieldset>
  );
}

function NumberFields({ trunk }: FieldsProps) {
  return (
    <Fieldset legend={text.numbers}>
      <Stack gap="sm">
        <TagsInput
          name="numbers"
          label={text.numbersLabel}
          description={text.numbersHint}
          defaultValue={trunk?.numbers ?? []}
          splitChars={[',', ';', ' ']}
          acceptValueOnBlur
          inputMode="tel"
        />
        <SimpleGrid cols={{ base: 1, sm: 2 }} className="aligned-fields">
          <NumberInput
            name="price_per_minute_usd"
            label={text.price}
            description={text.priceHint}
            defaultValue={trunk?.price_per_minute_usd ?? 0}
            min={0}
            max={1000}
            decimalScale={9}
            step={0.01}
          />
          <NumberInput
            name="channels"
            label={text.channels}
            description={text.channelsHint}
            defaultValue={trunk?.channels ?? 10}
            min={0}
            max={10_000}
            allowDecimal={false}
            required
          />
        </SimpleGrid>
      </Stack>
    </Fieldset>
  );
}

function SoundFields({ trunk }: FieldsProps) {
  return (
    <Fieldset legend={text.media}>
      <SimpleGrid cols={{ base: 1, sm: 2 }} className="aligned-fields">
        <MultiSelect
          name="codecs"
          label={text.codecs}
          description={text.codecsHint}
          defaultValue={trunk?.codecs ?? ['PCMU', 'PCMA']}
          data={CODECS}
        />
        <NativeSelect
          name="media_encryption"
          label={text.encryption}
          defaultValue={trunk?.media_encryption ?? 'none'}
          data={options(text.encryptions)}
        />
      </SimpleGrid>
    </Fieldset>
  );
}

function MoreFields({ trunk }: FieldsProps) {
  return (
    <Stack gap="sm">
      <TagsInput
        name="allowed_prefixes"
        label={text.prefixes}
        description={text.prefixesHint}
        defaultValue={trunk?.allowed_prefixes ?? []}
        splitChars={[',', ';', ' ']}
        acceptValueOnBlur
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }} className="aligned-fields">
        <NativeSelect
          name="health_mode"
          label={text.health}
          defaultValue={trunk?.health.mode ?? 'options'}
          data={options(text.healths)}
        />
        <NumberInput
          name="health_interval"
          label={text.interval}
          defaultValue={trunk?.health.interval_seconds ?? 30}
          min={10}
          max={3600}
          allowDecimal={false}
        />
        <TextInput
          name="inbound_username"
          label={text.inboundUsername}
          description={text.inboundHint}
          defaultValue={trunk?.inbound_auth?.username ?? ''}
          autoComplete="off"
          spellCheck={false}
        />
        <PasswordInput
          name="inbound_password"
          label={text.inboundPassword}
          description={text.inboundPasswordHint}
          minLength={12}
          maxLength={256}
          autoComplete="new-password"
        />
      </SimpleGrid>
      <NativeSelect name="refer" label={text.refer} defaultValue={trunk?.refer ?? 'none'} data={options(text.refers)} />
    </Stack>
  );
}

function options(labels: Record<string, string>) {
  return Object.entries(labels).map(([value, label]) => ({ value, label }));
}
