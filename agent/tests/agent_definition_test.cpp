// SPDX-License-Identifier: Apache-2.0
#include "core/definition.h"

#include <gtest/gtest.h>

#include <random>

namespace tide::agent::agent_definition_test {

struct Defined : Definition {
  uint8_t status = 0;
  std::string fault;
};

Defined define_by(const tide_xrce_create_t &body, const Profiles &profiles = {}) {
  Defined result;
  result.status = define(body, profiles, result, result.fault);
  return result;
}

tide_xrce_create_t create(uint8_t kind, uint8_t representation, std::string_view text) {
  tide_xrce_create_t body{};
  body.request.object = TIDE_XRCE_OBJECT(1, kind);
  body.object.kind = kind;
  body.object.representation = representation;
  body.object.text = {text.data(), text.size()};
  return body;
}

Defined by_xml(uint8_t kind, std::string_view xml) { return define_by(create(kind, TIDE_XRCE_BY_XML, xml)); }

TEST(Xml, ReadsElementsAttributesTextAndEntities) {
  const auto root =
      parse_xml("<?xml version='1.0'?><!-- c --><a x=\"1&amp;2\" y='z'> <b>t&lt;u</b><c/><!-- d --></a> ");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->attribute("x"), "1&2");
  EXPECT_EQ(root->attribute("y"), "z");
  EXPECT_EQ(root->text_at({"b"}), "t<u");
  EXPECT_NE(root->child("c"), nullptr);
  EXPECT_EQ(root->text_at({"c", "d"}), "");
}

TEST(Xml, RefusesWhatIsNotWellFormed) {
  for (const char *bad : {"", "<a>", "<a></b>", "</a>", "<a", "<a x></a>", "<a x=1></a>", "<a>&unknown;</a>",
                          "<a/><b/>", "text", "<!-- <a/>", "<a><!-- </a>", "< a/>", "<a x='1/>"}) {
    EXPECT_FALSE(parse_xml(bad)) << bad;
  }
}

TEST(Xml, BoundsDepthAndElements) {
  std::string deep, wide = "<r>";
  for (int level = 0; level < 17; level++) deep += "<a>";
  for (int level = 0; level < 17; level++) deep += "</a>";
  for (int element = 0; element < 256; element++) wide += "<a/>";
  EXPECT_FALSE(parse_xml(deep));
  EXPECT_TRUE(parse_xml(deep.substr(3, deep.size() - 7)));
  EXPECT_FALSE(parse_xml(wide + "</r>"));
  EXPECT_TRUE(parse_xml(wide.substr(0, wide.size() - 4) + "</r>"));
}

TEST(Xml, AnyTextIsReadOrRefused) {
  static constexpr std::string_view kPieces[] = {"<", ">",    "/", "a",    "</a>", "<a>", "=",  "\"",
                                                 "'", "&lt;", "&", "<!--", "-->",  " ",   "<?", "?>"};
  std::mt19937 random(20240607);
  for (int round = 0; round < 20000; round++) {
    std::string text;
    for (size_t piece = random() % 24; piece != 0; piece--) text += kPieces[random() % std::size(kPieces)];
    parse_xml(text);
  }
}

TEST(Definition, ReadsQosFromXml) {
  const Defined reader =
      by_xml(TIDE_XRCE_KIND_DATAREADER,
             "<dds><data_reader><topic><kind>NO_KEY</kind><name>rt/chatter</name><dataType>T_</dataType>"
             "<historyQos><kind>KEEP_LAST</kind><depth>7</depth></historyQos></topic><qos><reliability>"
             "<kind>RELIABLE</kind></reliability><durability><kind>TRANSIENT_LOCAL</kind></durability></qos></"
             "data_reader></dds>");
  ASSERT_EQ(reader.status, TIDE_XRCE_STATUS_OK);
  EXPECT_EQ(reader.topic, (Topic{"rt/chatter", "T_"}));
  EXPECT_EQ(reader.qos, (Qos{true, true, false, 7, 0, 0}));
}

TEST(Definition, HasTheDefaultsOfDds) {
  const Defined writer =
      by_xml(TIDE_XRCE_KIND_DATAWRITER, "<dds><data_writer><topic><name>t</name></topic></data_writer></dds>");
  const Defined reader =
      by_xml(TIDE_XRCE_KIND_DATAREADER, "<dds><data_reader><topic><name>t</name></topic></data_reader></dds>");
  EXPECT_EQ(writer.status, TIDE_XRCE_STATUS_OK);
  EXPECT_EQ(reader.status, TIDE_XRCE_STATUS_OK);
  EXPECT_EQ(writer.qos, (Qos{true, true, false, 1, 0, 0}));
  EXPECT_EQ(reader.qos, (Qos{false, false, false, 1, 0, 0}));
}

TEST(Definition, ReadsQosFromBinary) {
  auto body = create(TIDE_XRCE_KIND_DATAWRITER, TIDE_XRCE_BY_BINARY, {});
  body.object.topic = 0x0012;
  body.object.has_qos = true;
  body.object.qos_flags = TIDE_XRCE_QOS_KEEP_LAST | TIDE_XRCE_QOS_TRANSIENT_LOCAL;
  body.object.has_depth = true;
  body.object.depth = 5;
  EXPECT_EQ(define_by(body).qos, (Qos{false, true, false, 5, 0, 0}));
  body.object.qos_flags = TIDE_XRCE_QOS_RELIABLE;
  EXPECT_EQ(define_by(body).qos, (Qos{true, false, true, 5, 0, 0}));
}

TEST(Definition, NamesTheTopicsOfServices) {
  EXPECT_EQ(by_xml(TIDE_XRCE_KIND_REQUESTER,
                   "<dds><requester profile_name='p' service_name='add' request_type='Q' reply_type='R'/></dds>")
                .service,
            (Service{{"add_Request", "Q"}, {"add_Reply", "R"}}));
  EXPECT_EQ(by_xml(TIDE_XRCE_KIND_REPLIER,
                   "<dds><replier service_name='add' request_type='Q' reply_type='R'><request_topic_name>rq/addRequest"
                   "</request_topic_name><reply_topic_name>rr/addReply</reply_topic_name></replier></dds>")
                .service,
            (Service{{"rq/addRequest", "Q"}, {"rr/addReply", "R"}}));
}

TEST(Definition, FindsReferences) {
  Profiles profiles;
  EXPECT_FALSE(profiles.add("<profiles>"));
  ASSERT_TRUE(
      profiles.add("<dds><profiles><topic profile_name='square'><name>Square</name><dataType>Shape</dataType>"
                   "</topic></profiles></dds>"));
  const auto refer = [&](uint8_t kind, const char *name) {
    return define_by(create(kind, TIDE_XRCE_BY_REFERENCE, name), profiles);
  };
  EXPECT_EQ(refer(TIDE_XRCE_KIND_TOPIC, "square").status, TIDE_XRCE_STATUS_OK);
  EXPECT_EQ(refer(TIDE_XRCE_KIND_TOPIC, "square").topic, (Topic{"Square", "Shape"}));
  EXPECT_EQ(refer(TIDE_XRCE_KIND_TOPIC, "circle").status, TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
  EXPECT_EQ(refer(TIDE_XRCE_KIND_PARTICIPANT, "square").status, TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
}

TEST(Definition, RefusesWhatCannotBe) {
  auto kinds_differ = create(TIDE_XRCE_KIND_TOPIC, TIDE_XRCE_BY_XML, "");
  kinds_differ.request.object = 0x0011;
  auto domain = create(TIDE_XRCE_KIND_PARTICIPANT, TIDE_XRCE_BY_BINARY, {}), negative = domain;
  domain.object.domain = 233;
  negative.object.domain = -1;
  for (const auto &body :
       {kinds_differ, domain, negative, create(9, TIDE_XRCE_BY_XML, ""), create(TIDE_XRCE_KIND_TOPIC, 7, "")}) {
    EXPECT_EQ(define_by(body).status, TIDE_XRCE_STATUS_ERR_INVALID_DATA);
  }
  const std::string name(256, 'n');
  for (const std::string &xml :
       {std::string("<dds><nonsense/></dds>"), std::string("<dds><topic><name>t</name></topic></dds>"),
        "<dds><topic><name>" + name + "</name><dataType>T</dataType></topic></dds>"}) {
    EXPECT_EQ(by_xml(TIDE_XRCE_KIND_TOPIC, xml).status, TIDE_XRCE_STATUS_ERR_DDS) << xml;
  }
}

TEST(Names, OfTopicsAreAsRos2HasThem) {
  for (const char *good :
       {"rt/chatter", "rt/a/b_c/d1", "rt/_hidden", "rq/add_two_intsRequest", "rr/ns/add_two_intsReply",
        "rt/fib/_action/feedback", "rt/A", "Square", "HelloWorldTopic", "a.b-c", "plain/1/2", "rtx", "r/x"}) {
    EXPECT_EQ(topic_fault(good), "") << good;
  }
  for (const char *bad : {"",         "rt/",         "rt//chatter", "rt/a//b",
                          "rt/a/",    "rt/1a",       "rt/a/2",      "rt/a b",
                          "rt/a-b",   "rt/\xff\xfe", "rt/\xc3\xa9", "rt/a\n",
                          "rq/a~",    "rr/{node}",   "a b",         "a\tb",
                          "\x01",     "\x7f",        "caf\xc3\xa9", "ros_discovery_info",
                          "DCPSTopic"}) {
    EXPECT_NE(topic_fault(bad), "") << bad;
  }
  EXPECT_EQ(topic_fault("rt/" + std::string(252, 'a')), "");
  EXPECT_NE(topic_fault("rt/" + std::string(253, 'a')), "");
}

TEST(Names, OfTypesAndParticipantsCanBeShown) {
  EXPECT_EQ(type_fault("std_msgs::msg::dds_::String_"), "");
  for (const char *bad : {"", "a b", "\xff", "a\n"}) EXPECT_NE(type_fault(bad), "") << bad;
  EXPECT_EQ(participant_fault(""), "");
  EXPECT_EQ(participant_fault("my robot-7"), "");
  EXPECT_NE(participant_fault("my\nrobot"), "");
  for (const char *node : {"node", "/node", "/ns/node", "ns/node_1"}) EXPECT_TRUE(is_node_name(node)) << node;
  for (const char *other : {"", "/", "my robot", "7up", "/ns//node", "/ns/node/", "n\xff"}) {
    EXPECT_FALSE(is_node_name(other)) << other;
  }
}

TEST(Names, AreCheckedInEveryDescriptionAndTheFaultSaysWhichAndWhy) {
  const std::string bad = "rt/\xff\xfe";
  const std::vector<std::pair<uint8_t, std::string>> kinds = {
      {TIDE_XRCE_KIND_TOPIC, "<dds><topic><name>" + bad + "</name><dataType>T</dataType></topic></dds>"},
      {TIDE_XRCE_KIND_TOPIC, "<dds><topic><name>rt/a</name><dataType>" + bad + "</dataType></topic></dds>"},
      {TIDE_XRCE_KIND_DATAWRITER, "<dds><data_writer><topic><name>" + bad + "</name></topic></data_writer></dds>"},
      {TIDE_XRCE_KIND_DATAREADER,
       "<dds><data_reader><topic><name>rt/a</name><dataType>" + bad + "</dataType></topic></data_reader></dds>"},
      {TIDE_XRCE_KIND_REQUESTER, "<dds><requester service_name='s' request_type='" + bad + "' reply_type='R'/></dds>"},
      {TIDE_XRCE_KIND_REPLIER, "<dds><replier service_name='s' request_type='Q' reply_type='R'><reply_topic_name>" +
                                   bad + "</reply_topic_name></replier></dds>"},
      {TIDE_XRCE_KIND_PARTICIPANT, "<dds><participant><rtps><name>" + bad + "</name></rtps></participant></dds>"}};
  for (const auto &[kind, xml] : kinds) {
    const Defined refused = by_xml(kind, xml);
    EXPECT_EQ(refused.status, TIDE_XRCE_STATUS_ERR_DDS) << xml;
    EXPECT_NE(refused.fault.find("'rt/\\xff\\xfe' has characters"), std::string::npos) << refused.fault;
  }
  tide_xrce_create_t binary = create(TIDE_XRCE_KIND_TOPIC, TIDE_XRCE_BY_BINARY, "");
  binary.object.name = {bad.data(), bad.size()};
  binary.object.type = {"T", 1};
  EXPECT_EQ(define_by(binary).status, TIDE_XRCE_STATUS_ERR_INVALID_DATA);
}

}  // namespace tide::agent::agent_definition_test
