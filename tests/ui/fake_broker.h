// A broker made of a QLocalServer, for tests of what the window asks and how it takes the answers.
#pragma once

#include "models/protocol/protocol.h"

#include <QLocalServer>
#include <QLocalSocket>
#include <QTest>

#include <vector>

namespace celloom::test {
using protocol::Message;

/// Answers hello and subscribe as the broker does; everything else is left to the test.
class FakeBroker : public QObject {
public:
    explicit FakeBroker(const QString& address, int pid = 100) : pid(pid) {
        QLocalServer::removeServer(address);
        if (!server.listen(address)) qFatal("cannot listen");
        connect(&server, &QLocalServer::newConnection, this, [this] {
            peer = server.nextPendingConnection();
            connect(peer, &QLocalSocket::readyRead, this, [this] { read(); });
        });
    }

    void read() {
        const QByteArray bytes = peer->readAll();
        for (const auto& message : reader.feed({bytes.constData(), static_cast<std::size_t>(bytes.size())})) {
            QVERIFY(message.has_value());
            received.push_back(*message);
            const std::string type = (*message)["type"];
            if (type == "hello" && acceptsHello) {
                reply(*message, {{"version", protocol::kVersion}, {"workspace", "w"}, {"pid", pid}, {"sequence", sequence}});
            } else if (type == "hello") {
                send({{"type", "reply"},
                      {"id", (*message)["id"]},
                      {"ok", false},
                      {"error", {{"message", "Too old."}, {"hint", "Update."}, {"place", ""}}}});
            } else if (type == "subscribe") {
                const std::int64_t after = (*message)["after"];
                reply(*message, {{"sequence", sequence}, {"missed", after < missedBefore}});
            } else if (acceptsTry && type.starts_with("try_")) {
                reply(*message, Message::object());
            }
        }
    }
    void reply(const Message& to, Message fields) {
        fields["type"] = "reply";
        fields["id"] = to["id"];
        fields["ok"] = true;
        send(fields);
    }
    void send(const Message& message) { sendBytes(protocol::toLine(message)); }
    void sendBytes(const std::string& bytes) {
        peer->write(bytes.data(), static_cast<qint64>(bytes.size()));
        peer->flush();
    }
    /// The last message of this type, or a null.
    Message last(const std::string& type) const {
        for (auto message = received.rbegin(); message != received.rend(); ++message) {
            if ((*message)["type"] == type) return *message;
        }
        return nullptr;
    }

    QLocalServer server;
    QLocalSocket* peer = nullptr;
    protocol::LineReader reader;
    std::vector<Message> received;
    int pid;
    std::int64_t sequence = 7, missedBefore = 0;
    bool acceptsHello = true, acceptsTry = false;
};

} // namespace celloom::test
