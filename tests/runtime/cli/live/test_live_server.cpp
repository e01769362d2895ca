// The server of --serve beside visitors that ask byte by byte, half, not at all, or do not read what they
// are told: it answers others meanwhile, and its end waits for none of them. No test depends on how fast a
// machine is: what must end is waited for, and what must not end it is on until the test is over.

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "live/http_request.hpp"
#include "live/live_server.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/report/live.hpp"
#include "portwave/runtime/report/report.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/files/http_visitor.hpp"
#include "support/systems/oscillator_pair.hpp"

#ifdef PORTWAVE_CLI
#include "support/files/cli_process.hpp"
#endif

namespace portwave::test_live_server {
namespace {

using namespace std::chrono_literals;
using cli::LiveServer;
using cli::parse_request;
using testing::HttpVisitor;
using testing::port_in;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A run that is shown.
struct Shown {
  explicit Shown(LiveServer::Patience patience = {})
      : scenario(testing::pair_scenario()),
        stepper(scenario.system, scenario.options),
        report(stepper, "pair", 10.0, scenario.recording.quantities),
        server(std::make_unique<LiveServer>(0, report, patience)),
        port(port_in(server->address())) {}

  Scenario scenario;
  Stepper stepper;
  LiveReport report;
  std::unique_ptr<LiveServer> server;
  int port;
};

/// Nobody in these tests waits so long: an end that comes earlier has waited for nobody.
constexpr LiveServer::Patience kForever = {
    .request = 10min, .answer = 10min, .last_news = std::chrono::milliseconds(10)};

/// Sends a byte now and then, until it goes.
class Dripping {
 public:
  explicit Dripping(int port)
      : visitor_(port), thread_([this](const std::stop_token& stop) {
          const std::string head = "GET / HTTP/1.1\r\nX-Drip: ";
          for (std::size_t i = 0; !stop.stop_requested(); ++i) {
            if (!visitor_.send(i < head.size() ? head.substr(i, 1) : "x")) return;
            std::this_thread::sleep_for(2ms);
          }
        }) {}

 private:
  HttpVisitor visitor_;
  std::jthread thread_;
};

TEST(LiveServer, AnswersOthersBesideThoseThatAskByteByByte) {
  if (!has_report()) GTEST_SKIP() << "no reports in this build";
  Shown run(kForever);
  std::vector<std::unique_ptr<Dripping>> dripping;
  for (int i = 0; i < 15; ++i) dripping.push_back(std::make_unique<Dripping>(run.port));
  std::vector<HttpVisitor> silent;
  for (int i = 0; i < 10; ++i) silent.emplace_back(run.port);
  for (int i = 0; i < 5; ++i) {
    HttpVisitor visitor(run.port);
    ASSERT_TRUE(visitor.ask("/"));
    const std::string page = visitor.read_all();
    EXPECT_TRUE(page.starts_with("HTTP/1.1 200 OK\r\n")) << page.substr(0, 200);
    EXPECT_TRUE(holds(page, "</html>"));
  }
  run.server.reset();  // and does not wait for them
}

TEST(LiveServer, ItsEndWaitsForNobody) {
  using Make = std::function<HttpVisitor(int port)>;
  const std::vector<std::pair<const char*, Make>> kinds = {
      {"silent", [](int port) { return HttpVisitor(port); }},
      {"half a request",
       [](int port) {
         HttpVisitor visitor(port);
         visitor.send("GET / HTT");
         return visitor;
       }},
      {"half open",
       [](int port) {
         HttpVisitor visitor(port);
         visitor.send("GET / HTTP/1.1\r\n");
         visitor.say_no_more();
         return visitor;
       }},
      {"reads nothing of the page",
       [](int port) {
         HttpVisitor visitor(port, 1024);
         visitor.ask("/");
         return visitor;
       }},
      {"reads nothing of the news",
       [](int port) {
         HttpVisitor visitor(port, 1024);
         visitor.ask("/events");
         return visitor;
       }},
  };
  for (const bool has_ended : {false, true}) {
    Shown run(kForever);
    std::vector<HttpVisitor> visitors;
    for (const auto& [name, make] : kinds) {
      for (int i = 0; i < 4; ++i) visitors.push_back(make(run.port));
    }
    Dripping drip(run.port);
    run.stepper.step(3);
    if (has_ended) {
      run.report.end(summarize("pair", run.scenario.options, run.stepper, 1.0, {}));
    }
    run.server.reset();
    // Nothing of it is left: nobody listens there, and all that were there are told so.
    EXPECT_THROW(HttpVisitor{run.port}, std::runtime_error);
    for (const HttpVisitor& visitor : visitors) EXPECT_NO_THROW((void)visitor.read_all());
  }
}

TEST(LiveServer, ARequestHasATimeAsAWhole) {
  Shown run({.request = 100ms, .answer = 10min, .last_news = 10ms});
  std::vector<HttpVisitor> visitors;
  for (int i = 0; i < 12; ++i) visitors.emplace_back(run.port);
  // Each goes on sending; the server closes it all the same. Without that this would never end.
  for (const HttpVisitor& visitor : visitors) {
    ASSERT_TRUE(visitor.send("GET / HTTP/1.1\r\n"));
    while (visitor.send("X: y\r\n")) std::this_thread::sleep_for(5ms);
  }
}

TEST(LiveServer, AnAnswerHasATimeAsAWhole) {
  if (!has_report()) GTEST_SKIP() << "no reports in this build";
  Shown run({.request = 10min, .answer = 100ms, .last_news = 10ms});
  HttpVisitor slow(run.port, 1024);
  ASSERT_TRUE(slow.ask("/"));
  std::this_thread::sleep_for(400ms);  // longer than it may take; a slow machine only waits longer
  const std::string page = slow.read_all();
  EXPECT_FALSE(holds(page, "</html>")) << page.size();
  // The control: who reads gets all of it.
  Shown patient(kForever);
  HttpVisitor reader(patient.port, 1024);
  ASSERT_TRUE(reader.ask("/"));
  std::this_thread::sleep_for(400ms);
  EXPECT_TRUE(holds(reader.read_all(), "</html>"));
}

TEST(LiveServer, ReadersOfNewsHaveTheLastOnes) {
  Shown run({.request = 10min, .answer = 10min, .last_news = 1min});
  std::vector<HttpVisitor> readers;
  for (int i = 0; i < LiveServer::kMostReaders; ++i) {
    readers.emplace_back(run.port);
    ASSERT_TRUE(readers.back().ask("/events"));
    EXPECT_TRUE(holds(readers.back().read_until("data: "), "text/event-stream"));
  }
  HttpVisitor one_too_many(run.port);
  ASSERT_TRUE(one_too_many.ask("/events"));
  EXPECT_TRUE(one_too_many.read_all().starts_with("HTTP/1.1 503 "));
  HttpVisitor asks_no_more(run.port);
  ASSERT_TRUE(asks_no_more.ask("/nowhere"));
  asks_no_more.say_no_more();
  EXPECT_TRUE(asks_no_more.read_all().starts_with("HTTP/1.1 404 "));
  run.stepper.step(5);
  run.report.end(summarize("pair", run.scenario.options, run.stepper, 1.0, {}));
  run.server.reset();
  for (const HttpVisitor& reader : readers) {
    EXPECT_TRUE(holds(reader.read_all(), "\"ended\":true"));
  }
}

TEST(LiveServer, TheOldestThatHasNotAskedMakesRoom) {
  Shown run(kForever);
  std::vector<HttpVisitor> silent;
  for (int i = 0; i < 3 * LiveServer::kMostConnections; ++i) silent.emplace_back(run.port);
  HttpVisitor visitor(run.port);
  ASSERT_TRUE(visitor.ask("/nowhere"));
  EXPECT_TRUE(visitor.read_all().starts_with("HTTP/1.1 404 "));
  EXPECT_EQ(silent.front().read_all(), "");
}

TEST(LiveServer, RefusesWhatIsNoRequest) {
  Shown run(kForever);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\r\n\r\n", "400"},
      {"GET\r\n\r\n", "400"},
      {"GET / HTTP/2\r\n\r\n", "400"},
      {"GET  / HTTP/1.1\r\n\r\n", "400"},
      {"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n: empty\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n folded: a\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n\r\n", "403"},
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"},
      {std::string(100'000, 'x'), "431"},
  };
  for (const auto& [text, status] : cases) {
    HttpVisitor visitor(run.port);
    (void)visitor.send(text);
    EXPECT_TRUE(visitor.read_all().starts_with("HTTP/1.1 " + status)) << text.substr(0, 60);
  }
  HttpVisitor own(run.port);
  ASSERT_TRUE(own.ask("/events?a=b", "HEAD"));
  EXPECT_TRUE(own.read_all().starts_with("HTTP/1.1 200 "));  // the control
}

TEST(HttpRequest, IsReadAsItIsSaid) {
  const auto request = parse_request("GET /a?b=c HTTP/1.1\r\nA: b\r\nhOsT: \t here:1 \r\nC: d");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/a");
  EXPECT_EQ(request->host, "here:1");
  EXPECT_FALSE(parse_request("GET /a HTTP/1.1\nHost: here"));
}

#ifdef PORTWAVE_CLI
// A run with such visitors ends by itself, and where it is told to.
TEST(CliLiveServer, ARunEndsBesideSlowVisitors) {
  using testing::said;
  for (const int signal : {0, SIGTERM}) {
    const std::string steps = signal == 0 ? "100" : "100000000";
    testing::Subprocess process(
        testing::command({"run", testing::kPair, "--steps", steps, "--pace", "1", "--serve", "0"}));
    const std::string told = process.stderr_until("http://127.0.0.1:", "/\n");
    if (!holds(told, "http://127.0.0.1:")) {
      const auto result = process.wait();
      ASSERT_TRUE(holds(result.err, "built without")) << said(result);
      GTEST_SKIP() << "no reports in this build";
    }
    const int port = port_in(told);
    std::vector<std::unique_ptr<Dripping>> dripping;
    for (int i = 0; i < 12; ++i) dripping.push_back(std::make_unique<Dripping>(port));
    std::vector<HttpVisitor> others;
    for (int i = 0; i < 6; ++i) others.emplace_back(port, 1024);
    others[0].ask("/");
    others[1].ask("/events");
    others[2].send("GET /");
    others[3].send("GET / HTTP/1.1\r\n");
    others[3].say_no_more();
    if (signal != 0) process.send(signal);
    const auto result = process.wait();
    EXPECT_EQ(result.exit_code, signal == 0 ? 0 : 128 + signal) << said(result);
  }
}
#endif

}  // namespace
}  // namespace portwave::test_live_server
