// Hermes
// SPDX-License-Identifier: Apache-2.0
//
// Runs checks with mqtt.js: node client.js SCENARIO VERSION URL TOPIC [AUTHORITY]. VERSION is 4 (for 3.1.1) or 5.
// Exits with 0 if the check succeeds. Otherwise, exits with 1 and prints a line on standard error.
'use strict'
const assert = require('assert')
const fs = require('fs')
const mqtt = require('mqtt')

const [scenario, versionText, url, root, authority] = process.argv.slice(2)
const version = Number(versionText)
const patience = 10000

function within(promise, what) {
    let timer
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`no ${what}`)), patience) })
    return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

class Device {
    constructor(name, options = {}) {
        const { durable, ...more } = options
        const settings = { protocolVersion: version, clientId: `${root}/${name}`.replaceAll('/', '-'), reconnectPeriod: 0,
            clean: !durable, keepalive: 30, ...more }
        if (version === 5 && durable) settings.properties = { ...settings.properties, sessionExpiryInterval: 600 }
        if (authority) settings.ca = fs.readFileSync(authority)
        this.waiting = []
        this.wanting = []
        this.client = mqtt.connect(url, settings)
        this.client.on('message', (topic, payload, packet) => {
            const message = { topic, payload: payload.toString('latin1'), qos: packet.qos, retain: packet.retain,
                properties: packet.properties || {} }
            if (this.wanting.length) this.wanting.shift()(message)
            else this.waiting.push(message)
        })
    }

    connected() {
        return within(new Promise((resolve, reject) => {
            this.client.once('connect', connack => resolve(connack))
            this.client.once('error', reject)
        }), 'CONNACK').then(connack => { this.present = connack.sessionPresent; return this })
    }

    call(method, ...words) {
        return within(new Promise((resolve, reject) => {
            this.client[method](...words, (error, value) => error ? reject(error) : resolve(value))
        }), `answer to ${method}`)
    }

    async subscribe(filter, qos, more = {}) {
        const granted = await this.call('subscribe', filter, { qos, ...more })
        assert.deepStrictEqual(granted.map(one => one.qos), [qos])
    }

    publish(topic, payload, qos, more = {}) { return this.call('publish', topic, payload, { qos, ...more }) }

    next() {
        if (this.waiting.length) return Promise.resolve(this.waiting.shift())
        return within(new Promise(resolve => this.wanting.push(resolve)), 'message')
    }

    end() { return this.call('end', false, {}) }

    drop() {
        return within(new Promise(resolve => { this.client.once('close', resolve); this.client.stream.destroy() }), 'close')
    }
}

const open = (name, options) => new Device(name, options).connected()
const topic = name => `${root}/${name}`

const scenarios = {
    async qualities() {
        const a = await open('a'), b = await open('b')
        await b.subscribe(topic('#'), 2)
        for (const qos of [0, 1, 2]) {
            const sent = Array.from({ length: 200 }, (_, n) => `${n}`)
            await Promise.all(sent.map(payload => a.publish(topic('q'), payload, qos)))
            for (const payload of sent) {
                const { properties, ...message } = await b.next()
                assert.deepStrictEqual(message, { topic: topic('q'), payload, qos, retain: false })
            }
            const large = Buffer.alloc(300000, 7)
            await a.publish(topic('large'), large, qos)
            assert((await b.next()).payload === large.toString('latin1'), '300,000 bytes came otherwise')
        }
        await a.end()
        await b.end()
    },

    async retained() {
        const a = await open('a'), b = await open('b'), c = await open('c')
        await a.publish(topic('kept'), 'old', 1, { retain: true })
        await a.publish(topic('kept'), 'new', 1, { retain: true })
        await b.subscribe(topic('kept'), 1)
        let message = await b.next()
        assert.deepStrictEqual([message.payload, message.retain], ['new', true])
        await a.publish(topic('kept'), '', 1, { retain: true })
        message = await b.next()
        assert.deepStrictEqual([message.payload, message.retain], ['', false])
        await c.subscribe(topic('#'), 1)
        await a.publish(topic('live'), 'live', 1)
        assert.strictEqual((await c.next()).payload, 'live')
        for (const one of [a, b, c]) await one.end()
    },

    async session() {
        const a = await open('a'), b = await open('b', { durable: true })
        assert.strictEqual(b.present, false)
        await b.subscribe(topic('#'), 2)
        await b.end()
        for (let n = 0; n < 100; n++) await a.publish(topic('q'), `${n}`, 2)
        const again = new Device('b', { durable: true })
        await again.connected()
        assert.strictEqual(again.present, true)
        for (let n = 0; n < 100; n++) {
            const message = await again.next()
            assert.deepStrictEqual([message.payload, message.qos], [`${n}`, 2])
        }
        await a.end()
        await again.end()
    },

    async will() {
        const b = await open('b')
        await b.subscribe(topic('will'), 1)
        const dying = await open('dying', { will: { topic: topic('will'), payload: 'lost', qos: 1 } })
        await dying.drop()
        assert.strictEqual((await b.next()).payload, 'lost')
        await b.end()
    },

    async properties() {
        const a = await open('a'), b = await open('b')
        await b.subscribe(topic('p'), 2, { properties: { subscriptionIdentifier: 9 } })
        const properties = { userProperties: { key: ['one', 'two'], other: 'x' }, contentType: 'text/plain',
            responseTopic: topic('r'), correlationData: Buffer.from([0, 255]), messageExpiryInterval: 60,
            payloadFormatIndicator: true }
        for (const qos of [0, 1, 2]) {
            await a.publish(topic('p'), 'x', qos, { properties })
            const found = (await b.next()).properties
            assert.deepStrictEqual({ ...found.userProperties }, properties.userProperties)
            assert.deepStrictEqual([found.contentType, found.responseTopic, [...found.correlationData]],
                ['text/plain', topic('r'), [0, 255]])
            assert([].concat(found.subscriptionIdentifier).includes(9), 'no subscription identifier')
            assert(found.messageExpiryInterval >= 58 && found.messageExpiryInterval <= 60)
        }
        await a.end()
        await b.end()
    }
}

scenarios[scenario]().then(() => process.exit(0), error => {
    console.error(`${error.message}`.replaceAll('\n', ' '))
    process.exit(1)
})
